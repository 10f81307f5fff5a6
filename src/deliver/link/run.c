/* Programs run on the node over a link. */
#include "deliver/link/state.h"

static void run_free(struct link_run *r)
{
        str_wipe_release(&r->frame);
        str_wipe_release(&r->out);
        str_wipe_release(&r->errors);
        free(r);
}

static void run_over(struct link *l, struct link_run *r, int status, const char *errors)
{
        if (r->fn)
                r->fn(l, status, str_text(&r->out), errors, r->arg);
        run_free(r);
}

void link_run_program(struct link *l, const struct link_program *p)
{
        struct link_run *r = xcalloc(1, sizeof(*r)), **end = &l->runs;
        *r = (struct link_run){
                .id = ++l->last_run, .max = p->max, .sink = p->sink, .fn = p->fn, .arg = p->arg
        };
        size_t size = p->input_len, begin = wire_begin(&r->frame, WIRE_RUN);
        for (size_t i = 0; p->argv[i]; i++)
                size += strlen(p->argv[i]);
        if (size > LINK_RUN_MAX) { /* a bug in slipway, as with frames */
                run_over(l, r, -1, "what the program is to read does not fit into one frame");
                return;
        }
        wire_number(&r->frame, TAG_ID, r->id);
        /* adopt queries hosts that have no name yet */
        wire_text(&r->frame, TAG_NODE, l->target.cluster ? l->target.name : NULL);
        for (size_t i = 0; p->argv[i]; i++)
                wire_text(&r->frame, TAG_ARG, p->argv[i]);
        if (p->input)
                wire_bytes(&r->frame, TAG_INPUT, p->input, p->input_len);
        wire_end(&r->frame, begin);
        while (*end)
                end = &(*end)->next;
        *end = r;
        link_run_send(l);
}

void link_run(struct link *l, const char *const *argv, const char *input, size_t max,
        void (*fn)(struct link *l, int status, const char *out, const char *errors, void *arg),
        void *arg)
{
        link_run_program(l, &(struct link_program){ .argv = argv,
                                    .input = input,
                                    .input_len = input ? strlen(input) : 0,
                                    .max = max,
                                    .fn = fn,
                                    .arg = arg });
}

void link_run_send(struct link *l)
{
        size_t running = 0;
        if (l->phase < PHASE_IDLE || l->closing || !l->proc)
                return;
        for (struct link_run *r = l->runs; r && running < RUNS_AT_ONCE; r = r->next, running++) {
                if (r->sent)
                        continue;
                proc_write(l->proc, r->frame.data, r->frame.len);
                str_wipe_release(&r->frame);
                r->sent = true;
        }
}

static struct link_run **run_find(struct link *l, const struct wire_frame *f)
{
        uint64_t id = wire_value(f, TAG_ID, 0);
        struct link_run **p = &l->runs;
        while (*p && (*p)->id != id)
                p = &(*p)->next;
        return p;
}

void link_run_out(struct link *l, const struct wire_frame *f)
{
        struct link_run *r = *run_find(l, f);
        struct wire_field v;
        if (!r || !wire_find(f, TAG_BYTES, &v))
                return;
        bool errors = wire_value(f, TAG_STREAM, 1) == 2;
        if (r->sink && !errors) {
                r->sink(l, v.data, v.len, r->arg);
                return;
        }
        struct str *s = errors ? &r->errors : &r->out;
        r->over |= !errors && s->len + v.len > r->max;
        if (errors && s->len > r->max) {
                memmove(s->data, s->data + s->len - r->max / 2, r->max / 2);
                str_truncate(s, r->max / 2);
        }
        if (!r->over || errors)
                str_addn(s, v.data, v.len);
}

void link_run_exit(struct link *l, const struct wire_frame *f)
{
        struct link_run **p = run_find(l, f), *r = *p;
        if (!r)
                return;
        *p = r->next;
        link_run_send(l);
        char *errors CLEANUP(free_p) =
                r->over ? xasprintf("its output exceeds %zu bytes and was refused", r->max)
                        : str_take(&r->errors);
        if (r->over)
                str_truncate(&r->out, 0);
        /* negative values are the link's own: closed, or too much output */
        uint64_t status = wire_value(f, TAG_STATUS, 255);
        run_over(l, r, r->over ? LINK_RUN_OVER : status < 255 ? (int)status : 255, errors);
}

void link_run_end(struct link *l, bool tell)
{
        while (l->runs) {
                struct link_run *r = l->runs;
                l->runs = r->next;
                if (tell && !l->dead)
                        run_over(l, r, -1,
                                l->err.message ? l->err.message
                                               : "the link was closed before the program ended");
                else
                        run_free(r);
        }
}
