/* HTTP for clouds, on the event loop. A call is a row of a table (calls.h) and its arguments; a
 * session (aws/aws.h, openstack/openstack.h) knows the addresses and signs. Every service has its
 * own limit. What a service refuses because it came too fast is sent again, and so is what can be
 * sent twice; anything else is told to the caller as lost: it lists by mark, and decides. */
#ifndef SLIPWAY_CLOUD_H
#define SLIPWAY_CLOUD_H

#include "cloud/answer.h"
#include "cloud/fault.h"

struct event_base;
struct cloud;
struct session;
struct stream; /* exchange.h */
struct call;

/* One of the three protocols' ways to carry arguments. */
enum call_body {
        BODY_NONE,
        BODY_JSON, /* the caller's object, under the key `wrap` */
        BODY_FORM, /* AWS Query: Action=…&Version=…; path is the action */
        BODY_XML,  /* the caller's text */
        BODY_AMZ,  /* JSON 1.1; path is the target */
};

enum call_retry {
        /* with a ClientToken in its arguments as RETRY_SAFE, else as RETRY_ONCE */
        RETRY_TOKEN = 2,
        RETRY_SAFE, /* can be sent twice: it reads, deletes, or sets what it says */
        RETRY_ONCE, /* makes something: after the send nobody knows, so the caller looks */
};

/* Where an answer says that there is more, and the parameter that asks for it. */
struct call_page {
        const char *from, *to;
};
#define PAGES_AT_ONCE 3       /* rows at most */
#define PAGE_LINKS    "links" /* `from`: OpenStack's ways to say "next", whose marker is taken */

#define CALL_TEXT "text" /* `wrap`: the answer is plain text, a JSON string to the reader */

struct call_row {
        const char *name;    /* "list servers": what sentences say */
        const char *service; /* of the session: "compute", "ec2" */
        const char *method;
        const char *path; /* "/servers/{id}", an action or a target */
        const char
                *query; /* "tags={mark}&limit=500"; a parameter without its argument is left out */
        const char *wrap; /* key of the body, and of a single thing in the answer */
        enum call_body body;
        enum call_retry retry;
        const char *list;              /* path of the list in the answer; NULL: it is no list */
        const struct call_page *pages; /* until a row without `from`; NULL: there is one page */
        const struct answer_schema *answer; /* of the thing, or of an element; NULL: none is read */
};

struct call_args {
        /* for {name}, and further parameters of a form; "?name" is one of the query, as often as it
         * is there; key NULL ends */
        const struct pair *args;
        const json_t *body;   /* borrowed */
        const char *text;     /* of BODY_XML */
        const char *resource; /* what the sentence names, or NULL */
        unsigned timeout_ms;  /* of all attempts and pages; 0: two minutes */
        /* borrowed, for a row that is sent only once: not at the same time as another attempt */
        const struct stream *stream;
};

struct call_reply {
        const struct fault *fault; /* NULL: it succeeded */
        int status;
        const json_t *body; /* of a list: of its last page */
        const json_t *list; /* all pages' elements as an array; NULL when the row is no list */
        const char *token;  /* X-Subject-Token, or NULL */
        int64_t date;       /* of the answer, seconds since 1970; -1 */
        unsigned attempts;
};
typedef void (*call_fn)(const struct call_reply *reply, void *arg);

struct cloud_options {
        double rate;         /* requests a second of each service; 0: by the table */
        unsigned at_once;    /* 0: by the table */
        unsigned attempt_ms; /* of one attempt that can be sent twice; 0: 30 s, otherwise 60 s */
        size_t max;          /* bytes of one answer; 0: 64 MiB */
};

int cloud_open(struct event_base *base, const struct cloud_options *options, struct cloud **out,
        struct error *err);
void cloud_free(
        struct cloud *c); /* cancels its calls without callbacks; may be called inside one */
/* What must not appear in any sentence. */
struct secrets *cloud_secrets(struct cloud *c);

/* fn is called once, from the loop. The handle is valid until then. */
struct call *call_start(struct session *s, const struct call_row *row, const struct call_args *args,
        call_fn fn, void *arg);
void call_cancel(struct call *c); /* NULL is fine */

/* What came, by the row's schema: one struct, or all elements. */
int call_read(const struct call_row *row, const struct call_reply *reply, struct arena *a,
        void *out, struct error *err);
int call_read_list(const struct call_row *row, const struct call_reply *reply, struct arena *a,
        struct answers *out, struct error *err);

/* Synchronous: runs the loop until the answer. `out` (may be NULL) takes the list or the body. */
int call_do(struct session *s, const struct call_row *row, const struct call_args *args,
        json_t **out, struct fault *fault);

#endif
