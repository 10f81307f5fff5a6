/* The key that signs the tokens of service accounts. */
#include "pki/pki.h"

static int public_pem(EVP_PKEY *k, char **out, struct error *err)
{
        struct str spki CLEANUP(str_release) = { 0 }, pem CLEANUP(str_release) = { 0 };
        int r = key_spki(k, &spki, err);
        if (r < 0)
                return r;
        pem_add(&pem, "PUBLIC KEY", spki.data, spki.len);
        *out = str_take(&pem);
        return 0;
}

int sa_parse(const char *path, struct span pem, char **pub, struct error *err)
{
        EVP_PKEY *k CLEANUP(pkey_p) = key_parse(pem);
        if (!k)
                return error_set(err, EINVAL, EXIT_STATE, "%s is %s", path,
                        pem.n ? "damaged: it holds no private key in PEM form" : "empty");
        return public_pem(k, pub, err);
}

int sa_make(struct pki *p, enum key_algorithm a, char **key, char **pub, struct error *err)
{
        EVP_PKEY *k CLEANUP(pkey_p) = NULL;
        struct str pem CLEANUP(str_wipe_release) = { 0 };
        a = a == KEY_RSA_4096 ? KEY_RSA_2048 : a;
        int r = key_generate(p, a, &k, err);
        if (r == 0)
                r = key_pem(k, a, &pem, err);
        if (r == 0)
                r = public_pem(k, pub, err);
        if (r == 0)
                *key = str_take(&pem);
        return r;
}
