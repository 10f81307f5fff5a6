/* Provider aws: what is asked and answered at once. machines.c makes and removes. */
#include "provider/aws/ops.h"
#include "provider/login.h"

static int aws_list(struct provider_run *run, struct machine *out, struct error *err)
{
        struct cluster *c = run->cluster;
        struct aws_run *w;
        aws_close(run); /* what was asked before is no longer true */
        int r = aws_of(run, &w, err);
        if (r < 0)
                return r;
        nodes_address(w);
        cluster_balance(w);
        cluster_conf(w);
        machine_fill(w, &w->bastion.machine);
        for (size_t i = 0; i < c->node_count; i++) {
                out[i] = (struct machine){ .node = &c->nodes[i] };
                machine_fill(w, &out[i]);
        }
        return 0;
}

static int aws_find(
        struct provider_run *run, const struct node *n, struct machine *out, struct error *err)
{
        struct aws_run *w;
        int r = aws_of(run, &w, err);
        *out = (struct machine){ .node = n };
        if (r == 0)
                machine_fill(w, out);
        return r;
}

/* Machines, and interfaces and volumes of machines that were not removed completely. */
static int aws_others(struct provider_run *run, struct strings *out, struct error *err)
{
        static const enum list_id lists[] = { LIST_INSTANCES, LIST_INTERFACES };
        struct aws_run *w;
        int r = aws_of(run, &w, err);
        for (size_t l = 0; r == 0 && l < ARRAY_SIZE(lists); l++) {
                const void *row;
                for (size_t i = 0; (row = list_row(w, lists[l], i)); i++) {
                        const struct pairs *tags = row_tags(lists[l], row);
                        const char *role = tag_of(tags, TAG_ROLE);
                        if (!w->mark || !streq(tag_of(tags, TAG_MARK), w->mark) ||
                                !has_prefix(role, "node/") || streq(role + 5, AWS_BASTION) ||
                                cluster_node(run->cluster, role + 5) ||
                                strings_contain(out, role + 5) ||
                                (lists[l] == LIST_INSTANCES && instance_is_dead(row)))
                                continue;
                        strings_add(run->arena, out, arena_strdup(run->arena, role + 5));
                }
        }
        return r;
}

static int aws_survey(
        struct provider_run *run, struct machine *machines, struct survey *out, struct error *err)
{
        struct aws_run *w;
        int r = aws_of(run, &w, err);
        return r == 0 ? survey_check(w, machines, out, err) : r;
}

static const char *machine_instance(const struct machine *m)
{
        const char *slash = m->provider_id ? strrchr(m->provider_id, '/') : NULL;
        return slash ? slash + 1 : NULL;
}

static int aws_ask_one(struct aws_run *w, enum aws_call call, const char *param,
        const struct machine *m, json_t **answer, struct error *err)
{
        struct ask *all = NULL;
        size_t n = 0;
        const char *id = machine_instance(m);
        if (!id)
                return error_set(err, ENOENT, EXIT_STEP, "node %s has no instance", m->node->name);
        arg_put(&ask_new(w, &all, &n, call)->args, param, id);
        asks_run(w, all, n);
        int r = all[0].fault.kind ? fault_error(&all[0].fault, err) : 0;
        if (r == 0 && answer)
                *answer = json_incref(all[0].answer);
        asks_release(all, n);
        return r;
}

static int aws_console(
        struct provider_run *run, const struct machine *m, struct str *out, struct error *err)
{
        struct aws_run *w;
        json_t *answer = NULL;
        int r = aws_of(run, &w, err);
        if (r == 0)
                r = aws_ask_one(w, AWS_CONSOLE, "InstanceId", m, &answer, err);
        const char *text = json_string_value(json_object_get(answer, "output"));
        if (text && !str_add_from_base64(out, text, strlen(text)))
                r = error_set(
                        err, EPROTO, EXIT_STEP, "the console of %s is not base64", m->node->name);
        json_decref(answer);
        return r;
}

static int aws_stop(struct provider_run *run, const struct machine *m, bool hard, struct error *err)
{
        struct aws_run *w;
        int r = aws_of(run, &w, err);
        return r == 0 ? aws_ask_one(w, AWS_STOP_INSTANCES, "InstanceId.1", m, NULL, err) : r;
}

static int aws_start(struct provider_run *run, const struct machine *m, struct error *err)
{
        struct aws_run *w;
        int r = aws_of(run, &w, err);
        return r == 0 ? aws_ask_one(w, AWS_START_INSTANCES, "InstanceId.1", m, NULL, err) : r;
}

const struct provider_ops aws_provider_ops = { .name = "aws",
        .makes_machines = true,
        .remote = true,
        .list = aws_list,
        .find = aws_find,
        .others = aws_others,
        .survey = aws_survey,
        .prepare = aws_prepare,
        .create = aws_create,
        .destroy = aws_destroy,
        .retire = aws_retire,
        .bastion = aws_bastion,
        .cleanup = aws_cleanup,
        .members = aws_members,
        .leaks = aws_leaks,
        .leak_delete = aws_leak_delete,
        .console = aws_console,
        .close = aws_close,
        .stop = aws_stop,
        .start = aws_start };
