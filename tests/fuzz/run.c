/* Runs a fuzz harness over every file of the directories given: the saved corpus as an ordinary
 * test. */
#include <dirent.h>

#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
        size_t ran = 0;
        for (int i = 1; i < argc; i++) {
                DIR *d = opendir(argv[i]);
                if (!d) {
                        fprintf(stderr, "%s: %s\n", argv[i], strerror(errno));
                        return 1;
                }
                for (struct dirent *e; (e = readdir(d));) {
                        if (e->d_name[0] == '.')
                                continue;
                        struct error err CLEANUP(error_release) = { 0 };
                        struct str s CLEANUP(str_release) = { 0 };
                        char *path CLEANUP(free_p) = path_join(argv[i], e->d_name);
                        if (file_read(path, 32 << 20, &s, &err) < 0) {
                                fprintf(stderr, "%s\n", err.message);
                                return 1;
                        }
                        LLVMFuzzerTestOneInput((const uint8_t *)str_text(&s), s.len);
                        ran++;
                }
                closedir(d);
        }
        printf("%zu inputs\n", ran);
        return ran ? 0 : 1;
}
