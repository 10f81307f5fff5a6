/* Whether an API server can be reached without a tunnel. Synchronous and short. */
#include "kube/call.h"

static size_t direct_drop_body(char *data, size_t size, size_t n, void *arg) { return size * n; }

static CURL *direct_question(const char *server, const struct kube_target *target, unsigned ms)
{
        CURL *easy = curl_easy_init();
        char *url CLEANUP(free_p) = xasprintf("%s/readyz", server);
        struct curl_blob ca = { (char *)target->ca, strlen(target->ca), CURL_BLOB_COPY };
        if (!easy)
                abort();
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &ca);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ms);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, direct_drop_body);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        return easy;
}

/* Any answer counts, also a refusal: the certificate was the cluster's. */
static bool direct_answered(CURLM *multi)
{
        int left;
        for (CURLMsg *m; (m = curl_multi_info_read(multi, &left));)
                if (m->msg == CURLMSG_DONE && m->data.result == CURLE_OK)
                        return true;
        return false;
}

bool kube_direct(const struct kube_target *target, unsigned ms)
{
        CURLM *multi = curl_multi_init();
        size_t n = 0;
        bool yes = false;
        if (!multi)
                abort();
        while (target->servers[n])
                n++;
        CURL **asked = xcalloc(n + 1, sizeof(*asked));
        for (size_t i = 0; i < n; i++)
                curl_multi_add_handle(
                        multi, asked[i] = direct_question(target->servers[i], target, ms));
        for (int running = 1; running && !yes;) {
                if (curl_multi_perform(multi, &running) != CURLM_OK)
                        break;
                yes = direct_answered(multi);
                if (running && !yes)
                        curl_multi_poll(multi, NULL, 0, 50, NULL);
        }
        for (size_t i = 0; i < n; i++) {
                curl_multi_remove_handle(multi, asked[i]);
                curl_easy_cleanup(asked[i]);
        }
        curl_multi_cleanup(multi);
        free(asked);
        return yes;
}
