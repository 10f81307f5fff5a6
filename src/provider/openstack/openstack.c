#include <event2/event.h>

#include "base/file.h"
#include "provider/login.h"
#include "provider/openstack/image.h"

bool os_is_id(const char *text)
{
        static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        if (strlen(text) != sizeof(form) - 1)
                return false;
        for (size_t i = 0; form[i]; i++)
                if (form[i] == '-' ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]))
                        return false;
        return true;
}

const char *os_region(const struct os *os) { return os->options->region; }

bool os_own_group(const struct os *os)
{
        const struct strings *g = &os->options->security_groups;
        return g->n == 1 && streq(g->v[0], "managed");
}

bool os_wants_vip(const struct os *os) { return os->options->load_balancer != OS_LB_NONE; }

/* ---- the state of a run ---- */

static void os_line_close(struct os_line *l)
{
        os_free(l->session);
        cloud_free(l->cloud);
        l->session = NULL;
        l->cloud = NULL;
}

static int os_line_open(struct os *os, struct os_line *l, struct error *err)
{
        int r = cloud_open(l->base, NULL, &l->cloud, err);
        if (r == 0)
                r = os_open(l->cloud,
                        &(struct openstack_options){ os->options->cloud.name, os->options->region },
                        &l->session, err);
        if (r < 0)
                os_line_close(l);
        else
                os_hide(l->session, os->run->secret);
        return r;
}

int os_line_async(struct os *os, struct error *err)
{
        os->async.base = os->run->base;
        return os->async.session ? 0 : os_line_open(os, &os->async, err);
}

int os_of(struct provider_run *run, struct os **out, struct error *err)
{
        struct os *os = *out = run->own;
        if (os)
                return 0;
        os = xcalloc(1, sizeof(*os));
        os->run = run;
        os->options = &run->cluster->provider.openstack;
        if (run->prefix) {
                os->mark = arena_printf(run->cluster->arena, OS_MARK "%s", run->prefix);
                os->name =
                        arena_printf(run->cluster->arena, "%s-%s", run->cluster->name, run->prefix);
        }
        os_bastion_begin(os);
        os_image_begin(os);
        os->sync.base = event_base_new();
        run->own = *out = os;
        int r = os_line_open(os, &os->sync, err);
        if (r < 0)
                os_close(run);
        return r;
}

void os_close(struct provider_run *run)
{
        struct os *os = run->own;
        run->own = NULL;
        if (!os)
                return;
        os_waits_free(os);
        os_upload_end(os);
        os_line_close(&os->async);
        os_line_close(&os->sync);
        for (struct os_job *j = os->jobs, *next; j; j = next) { /* they were interrupted */
                next = j->next;
                error_release(&j->err);
                free(j);
        }
        event_base_free(os->sync.base);
        arena_release(&os->found.arena);
        arena_release(&os->looked.arena);
        free(os);
}

/* ---- prepare ---- */

struct preparing {
        struct os *os;
        void (*say)(const char *what, int permille, void *arg);
        void (*fn)(struct error *err, void *arg);
        void *arg;
};

static void on_stage_says(const char *what, int permille, void *arg)
{
        const struct preparing *p = arg;
        if (p->say)
                p->say(what, permille, p->arg);
}

static void on_stages_done(struct error *err, void *arg)
{
        const struct preparing *p = arg;
        if (err)
                p->fn(err, p->arg);
        else
                os_bastion_make(p->os, p->fn, p->arg);
}

static void openstack_prepare(struct provider_run *run,
        void (*say)(const char *what, int permille, void *arg),
        void (*fn)(struct error *err, void *arg), void *arg)
{
        struct preparing *p = arena_new(run->arena, struct preparing);
        static const os_stage stages[] = { stage_login, stage_image_methods, stage_image_fetch,
                stage_image_digest, stage_image, stage_image_ready, stage_twins,
                stage_volume_spares, stage_network, stage_subnet, stage_rules, stage_rules_old,
                stage_ports, stage_ports_set, stage_further_attach, stage_trunks, stage_floating,
                stage_balancer, stage_volumes, stage_members, stage_clients_begin, stage_clients,
                stage_clients_tag, stage_volumes_ready, stage_attach, stage_credential,
                stage_credential_old, NULL };
        *p = (struct preparing){ run->own, say, fn, arg };
        job_start(run->own, stages, on_stage_says, on_stages_done, p);
}

void stage_login(struct os_job *j)
{
        struct error err CLEANUP(error_release) = { 0 };
        if (login_key_make(j->os->run->state, &err) < 0)
                job_fail(j, &err);
}

const struct provider_ops openstack_ops = {
        .name = "openstack",
        .makes_machines = true,
        .remote = true,
        .list = openstack_list,
        .find = openstack_find,
        .others = openstack_others,
        .survey = openstack_survey,
        .prepare = openstack_prepare,
        .create = openstack_create,
        .destroy = openstack_destroy,
        .retire = openstack_retire,
        .cleanup = openstack_cleanup,
        .members = openstack_members,
        .bastion = openstack_bastion,
        .leaks = openstack_leaks,
        .leak_delete = openstack_leak_delete,
        .console = openstack_console,
        .close = os_close,
        .stop = openstack_stop,
        .start = openstack_start,
};
