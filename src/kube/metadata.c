/* Lists objects without their contents: of Secrets, for example, only names and labels are read. */
#include "kube/call.h"

#define ACCEPT "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define PAGE   500
#define TOKEN  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-.~%"

struct listing {
        struct kube_call call;
        char *path, *selector;
        size_t max;
        json_t *items;
        struct request *request;
        void (*fn)(json_t *items, const char *error, void *arg);
        void *arg;
};

static void listing_destroy(struct kube_call *c)
{
        struct listing *l = (struct listing *)c;
        call_unlink(c);
        request_destroy(l->request);
        free(l->path);
        free(l->selector);
        json_decref(l->items);
        free(l);
}

static void listing_end(struct listing *l, const char *error)
{
        void (*fn)(json_t * items, const char *error, void *arg) = l->fn;
        void *arg = l->arg;
        json_t *items = json_incref(l->items);
        listing_destroy(&l->call);
        fn(error ? NULL : items, error, arg);
        json_decref(items);
}

static void listing_ask(struct listing *l, const char *from);

static void on_listing(const struct kube_reply *reply, void *arg)
{
        struct listing *l = arg;
        const char *more = json_string_value(
                json_object_get(json_object_get(reply->body, "metadata"), "continue"));
        l->request = NULL;
        const json_t *items = json_object_get(reply->body, "items"); /* null, when there are none */
        if (reply->error || !(json_is_array(items) || json_is_null(items))) {
                char *why CLEANUP(free_p) =
                        xstrdup(reply->error ? reply->error : "the API's answer is not a list");
                listing_end(l, why);
                return;
        }
        if (json_is_array(items))
                json_array_extend(l->items, (json_t *)items);
        if (!more || !*more)
                listing_end(l, NULL);
        else if (json_array_size(l->items) >= l->max || more[strspn(more, TOKEN)])
                listing_end(l, "the API's list is longer than slipway reads, or does not end");
        else
                listing_ask(l, more);
}

static void listing_ask(struct listing *l, const char *from)
{
        char *next = curl_easy_escape(NULL, from ? from : "", 0);
        char *path CLEANUP(free_p) = xasprintf("%s?limit=%d&labelSelector=%s%s%s", l->path, PAGE,
                l->selector, from ? "&continue=" : "", next ? next : "");
        curl_free(next);
        l->request = request_new(l->call.k, "GET", path, on_listing, l);
        l->request->accept = ACCEPT;
        request_start(l->request);
}

void kube_list_metadata(struct kube *k, const char *path, const char *selector, size_t max,
        void (*fn)(json_t *items, const char *error, void *arg), void *arg)
{
        struct listing *l = xcalloc(1, sizeof(*l));
        l->call = (struct kube_call){ .k = k, .destroy = listing_destroy };
        l->path = xstrdup(path);
        l->selector = xstrdup(selector);
        l->max = max;
        l->items = json_array();
        l->fn = fn;
        l->arg = arg;
        call_link(k, &l->call);
        listing_ask(l, NULL);
}
