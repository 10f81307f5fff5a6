#include "provider/bastion.h"
#include "base/quote.h"

void bastion_begin(struct bastion_machine *b, const struct provider_run *run,
        const struct bastion *file, const char *name)
{
        const struct cluster *c = run->cluster;
        const char *image = file->image;
        if (!image && c->pools.n)
                image = c->pools.v[0].image;
        *b = (struct bastion_machine){ .wanted = file->flavor || file->type,
                .pool = { .name = "bastion",
                        .flavor = file->flavor,
                        .instance_type = file->type,
                        .image = image,
                        .floating_ip = true,
                        .public_ip = true,
                        .root_volume.encrypted = true,
                        .spread = SPREAD_NONE },
                .node = { .name = name, .index = 1 } };
        b->node.pool = &b->pool;
        b->machine.node = &b->node;
}

const char *bastion_user(const struct bastion *file, const char *user)
{
        return file->user ? file->user : user;
}

/* For a hint: the words of ssh that lead to it. */
static const char *bastion_words(const struct provider_run *run, const struct link_target *t)
{
        struct str s CLEANUP(str_release) = { 0 };
        const char *comma = strrchr(t->bastion, ','), *last = comma ? comma + 1 : t->bastion;
        str_add(&s, "-i ");
        quote_shell(&s, t->key);
        if (t->own_bastion) {
                str_add(&s, " -o ");
                quote_shell(&s, arena_printf(run->arena, "UserKnownHostsFile=%s", t->known_hosts));
        }
        if (comma) {
                str_add(&s, " -J ");
                quote_shell(&s,
                        arena_printf(run->arena, "%.*s", (int)(comma - t->bastion), t->bastion));
        }
        str_addc(&s, ' ');
        quote_shell(
                &s, has_prefix(last, "ssh://") ? last : arena_printf(run->arena, "ssh://%s", last));
        return arena_strdup(run->cluster->arena, str_text(&s));
}

void bastion_way(const struct provider_run *run, const struct bastion_machine *b,
        const struct bastion *file, struct link_target *t)
{
        const struct machine *m = &b->machine;
        bool there = m->state == MACHINE_RUNNING && m->target.host;
        t->bastion = file->address;
        t->own_bastion = b->wanted;
        if (b->wanted)
                t->bastion =
                        there ? arena_printf(run->arena, "%s@%s", m->target.user, m->target.host)
                              : arena_printf(run->arena, "%s" LINK_NOWHERE, b->node.name);
        if (run->cluster->node_count && streq(t->name, run->cluster->nodes[0].name))
                run->cluster->bastion =
                        t->bastion && (there || !b->wanted) ? bastion_words(run, t) : NULL;
}
