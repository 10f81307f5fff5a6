/* Steps that create or destroy a machine. What goes over its link is in member_link.c. */
#include "base/file.h"
#include "base/quote.h"
#include "cluster/site/site.h"

/* ---- artifacts and what the provider needs once ---- */

static void on_fetch_progress(const struct item *item, const char *what, int permille, void *arg)
{
        step_doing(arg, permille, "%s%s%s: %s", item->name, item->version ? " " : "",
                item->version ? item->version : "", what);
}

static void on_fetch_pinned(const struct item *item, const char *how, void *arg)
{
        step_changed(arg, "%s%s%s: %s", item->name, item->version ? " " : "",
                item->version ? item->version : "", how);
}

static void on_fetch_notice(const char *text, void *arg) { step_changed(arg, "%s", text); }

const char *member_arch(const struct member *m)
{
        const char *arch = json_string_value(json_object_get(m->seen.said, "arch"));
        return arch && streq(arch, "arm64")   ? "arm64"
               : arch && streq(arch, "amd64") ? "amd64"
                                              : arch_own();
}

struct item *member_items(const struct member *m)
{
        const struct site *s = m->site;
        for (size_t i = 0; i < s->arch_count; i++)
                if (streq(s->archs[i], member_arch(m)))
                        return s->items + i * s->item_count;
        return NULL;
}

/* The items are the same for each architecture, their files are not. */
static void items_by_arch(struct site *s)
{
        s->arch_at = s->arch_count = 0;
        for (size_t i = 0; i < s->count; i++) {
                const char *arch = member_arch(&s->members[i]);
                if (!s->arch_count || (s->arch_count == 1 && !streq(s->archs[0], arch)))
                        s->archs[s->arch_count++] = arch;
        }
        struct item *all = xcalloc(s->item_count * s->arch_count, sizeof(*all));
        for (size_t i = 0; i < s->arch_count; i++)
                memcpy(all + i * s->item_count, s->items, s->item_count * sizeof(*all));
        free(s->items);
        s->items = all;
}

static void fetch_next(struct step *s);

static void on_steps_node_fetched(struct error *err, void *arg)
{
        struct step *s = arg;
        struct site *site = s->arg;
        if (err || ++site->arch_at == site->arch_count)
                step_done(s, err);
        else
                fetch_next(s);
}

/* One architecture after the other, because both write the same lock file. */
static void fetch_next(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        struct fetch_request request = { .cluster = site->cluster,
                .arch = site->archs[site->arch_at],
                .lock = site->lock_path,
                .items = site->items + site->arch_at * site->item_count,
                .count = site->item_count,
                .on_progress = on_fetch_progress,
                .on_pinned = on_fetch_pinned,
                .on_notice = on_fetch_notice,
                .on_done = on_steps_node_fetched,
                .arg = s };
        request.agent = agent_for(request.arch, &request.agent_len);
        fetch_free(site->fetch);
        site->fetch = NULL;
        if (fetch_start(site->base, &request, &site->fetch, &err) < 0)
                step_done(s, &err);
}

void step_artifacts(struct step *s)
{
        struct site *site = s->arg;
        struct error err CLEANUP(error_release) = { 0 };
        site->items = fetch_items(site->cluster, site->arena, &site->item_count, &err);
        if (!site->items) {
                step_done(s, &err);
                return;
        }
        items_by_arch(site);
        fetch_next(s);
}

/* What was known of addresses before prepare. */
struct preparing {
        struct step *step;
        struct ip *ips;
        const char *endpoint;
};

static void on_prepare_says(const char *what, int permille, void *arg)
{
        const struct preparing *p = arg;
        step_doing(p->step, permille, "%s", what);
}

/* Whether files or certificates of a node were already made with the addresses. */
static bool site_rendered(const struct site *s)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->members[i].plan.rendered || s->members[i].plan.dropped ||
                        s->members[i].plan.issued)
                        return true;
        return false;
}

/* A cloud gave another address than the one that was asked for. */
static int prepared_check(const struct preparing *p, struct error *err)
{
        const struct site *s = p->step->arg;
        const char *endpoint = cluster_endpoint_host(s->cluster);
        char now[IP_TEXT], then[IP_TEXT];
        if (!site_rendered(s))
                return 0;
        for (size_t i = 0; i < s->count; i++)
                if (!ip_equal(&p->ips[i], &s->members[i].node->ip[0]))
                        error_set(err, EAGAIN, EXIT_STEP,
                                "node %s: its address is %s, and the plan was made with %s",
                                s->members[i].node->name,
                                ip_format(&s->members[i].node->ip[0], now),
                                ip_format(&p->ips[i], then));
        if (!err->code && endpoint && (!p->endpoint || !streq(p->endpoint, endpoint)))
                error_set(err, EAGAIN, EXIT_STEP,
                        "the API's address is %s, and the plan was made with %s", endpoint,
                        p->endpoint ? p->endpoint : "none");
        return err->code ? error_hint(err, "run 'slipway up' again: it uses the new address") : 0;
}

static void on_prepared(struct error *err, void *arg)
{
        const struct preparing *p = arg;
        struct error other CLEANUP(error_release) = { 0 };
        if (!err && prepared_check(p, &other) < 0)
                err = &other;
        step_done(p->step, err);
}

void step_prepare(struct step *s)
{
        struct site *site = s->arg;
        bool any = site->found.survey.changes;
        for (size_t i = 0; i < site->count; i++)
                any |= site->members[i].run.create != NULL;
        if (!any) {
                step_unchanged(s);
                return;
        }
        struct preparing *p = arena_new(site->arena, struct preparing);
        *p = (struct preparing){ .step = s,
                .ips = arena_array(site->arena, struct ip, site->count + 1),
                .endpoint = cluster_endpoint_host(site->cluster) };
        for (size_t i = 0; i < site->count; i++)
                p->ips[i] = site->members[i].node->ip[0];
        site->ops->prepare(&site->provider, on_prepare_says, on_prepared, p);
}

/* ---- machines ---- */

static void on_made(struct machine *machine, struct error *err, void *arg)
{
        struct step *s = arg;
        if (!err)
                step_changed(s, "made the machine");
        step_done(s, err);
}

static void on_started(struct machine *machine, struct error *err, void *arg)
{
        struct step *s = arg;
        if (!err)
                step_changed(s, "the machine was off: started it");
        step_done(s, err);
}

static void on_destroyed(struct machine *machine, struct error *err, void *arg)
{
        struct step *s = arg;
        if (!err)
                step_changed(s, "removed the machine");
        step_done(s, err);
}

static void on_swept(struct machine *machine, struct error *err, void *arg)
{
        if (err)
                step_done(arg, err);
        else
                step_unchanged(arg);
}

void step_create(struct step *s)
{
        struct member *m = s->arg;
        if (m->machine->state == MACHINE_RUNNING) {
                step_unchanged(s);
                return;
        }
        m->run.made = true;
        m->site->ops->create(&m->site->provider, m->machine,
                m->machine->state == MACHINE_STOPPED ? on_started : on_made, s);
}

void step_destroy(struct step *s)
{
        struct member *m = s->arg;
        bool absent = m->machine->state == MACHINE_ABSENT;
        if (absent && m->plan.fate != FATE_REMOVE)
                step_unchanged(s);
        else
                /* also if the machine no longer exists: otherwise what a killed run left of it is
                 * found every time */
                m->site->ops->destroy(
                        &m->site->provider, m->machine, absent ? on_swept : on_destroyed, s);
}

/* ---- a machine that is made anew ---- */

/* What is known of it is not true of the next one. */
static void member_forget_machine(struct member *m)
{
        member_hang_up(m);
        json_decref(m->seen.said);
        json_decref(m->seen.drift);
        m->seen.said = m->seen.drift = NULL;
        m->seen.digest[0] = m->seen.applied[0] = 0;
        m->seen.host_key = NULL;
        m->seen.facts = (struct facts){ 0 };
        m->seen.looked = m->seen.answers = false;
        member_forget_spec(m);
        m->run.touched = m->run.left = m->run.named = m->run.labelled = m->run.cordoned = false;
}

static void on_retired(struct machine *machine, struct error *err, void *arg)
{
        struct step *s = arg;
        if (!err) {
                member_forget_machine(s->arg);
                step_changed(s, "removed the machine; its address and volumes are kept");
        }
        step_done(s, err);
}

static void retire_begin(struct step *s)
{
        struct member *m = s->arg;
        m->site->ops->retire(&m->site->provider, m->machine, on_retired, s);
}

static void on_etcd_data_gone(
        struct link *l, int status, const char *out, const char *errors, void *arg)
{
        struct step *s = arg;
        if (status == 0)
                retire_begin(s);
        else
                step_fail(s, EIO, EXIT_STEP, "run again: it continues where it stopped",
                        "the data of its previous etcd member could not be removed");
}

/* The directory may be on a volume that stays, and etcd does not start with the data of a member
 * that has left. */
void step_retire(struct step *s)
{
        struct member *m = s->arg;
        if (!(m->node->pool->roles & ROLE_ETCD) || !m->plan.joins || !m->node->pool->volumes.n) {
                retire_begin(s);
                return;
        }
        if (member_cut(m, s))
                return;
        struct str script CLEANUP(str_release) = { 0 };
        char *path CLEANUP(free_p) = path_join(m->site->cluster->etcd.data_dir, "member");
        str_add(&script, "systemctl stop etcd.service; rm -rf -- ");
        quote_shell(&script, path);
        member_run(m, (const char *const[]){ "sh", "-c", str_text(&script), NULL }, NULL, 1 << 12,
                on_etcd_data_gone, s);
}
