#include "base/print.h"
#include "cmd/table.h"

void table_text(struct str *out, const char *const *titles, size_t columns, const json_t *entries,
        void (*row_of)(const json_t *entry, const char **row, struct arena *a), struct arena *a)
{
        size_t rows = json_array_size(entries) + 1;
        const char **cells = arena_array(a, const char *, rows *columns);
        int *width = arena_array(a, int, columns);
        memcpy(cells, titles, columns * sizeof(*cells));
        for (size_t i = 1; i < rows; i++)
                row_of(json_array_get(entries, i - 1), cells + i * columns, a);
        for (size_t i = 0; i < rows * columns; i++) {
                cells[i] = cells[i] ? cells[i] : "-";
                int n = (int)strlen(cells[i]);
                width[i % columns] = n > width[i % columns] ? n : width[i % columns];
        }
        for (size_t i = 0; i < rows * columns; i++) {
                bool last = i % columns + 1 == columns;
                text_addf(
                        out, last ? "%-*s\n" : "%-*s", last ? 0 : width[i % columns] + 2, cells[i]);
        }
}
