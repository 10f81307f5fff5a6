/* Texts sealed as kubeadm seals what it keeps in the Secret kubeadm-certs. */
#include <openssl/crypto.h>

#include "pki/pki.h"

#define SEAL_NONCE 12
#define SEAL_TAG   16

void seal_key(char out[SEAL_KEY_HEX]) { random_text(out, SEAL_KEY_HEX - 1, "0123456789abcdef"); }

static bool seal_bytes(const char *hex, uint8_t out[32])
{
        size_t n = 0;
        return strlen(hex) == SEAL_KEY_HEX - 1 && OPENSSL_hexstr2buf_ex(out, 32, &n, hex, 0) == 1 &&
               n == 32;
}

int seal_text(const char *key, const char *text, struct str *out, struct error *err)
{
        size_t n = strlen(text);
        uint8_t bytes[32], *sealed = xmalloc(SEAL_NONCE + n + SEAL_TAG);
        EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
        int some = 0, rest = 0;
        random_bytes(sealed, SEAL_NONCE);
        bool ok = x && n < PEM_MAX && seal_bytes(key, bytes) &&
                  EVP_EncryptInit_ex(x, EVP_aes_256_gcm(), NULL, bytes, sealed) == 1 &&
                  EVP_EncryptUpdate(x, sealed + SEAL_NONCE, &some, (const uint8_t *)text, (int)n) ==
                          1 &&
                  EVP_EncryptFinal_ex(x, sealed + SEAL_NONCE + some, &rest) == 1 &&
                  EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_GCM_GET_TAG, SEAL_TAG, sealed + SEAL_NONCE + n) ==
                          1;
        if (ok)
                str_add_base64(out, sealed, SEAL_NONCE + n + SEAL_TAG);
        EVP_CIPHER_CTX_free(x);
        wipe(bytes, sizeof(bytes));
        free(sealed);
        return ok ? 0 : openssl_error(err, "cannot encrypt the certificates");
}
