/* Adding encryption to a running cluster. While only some API servers have the key, nothing may be
 * encrypted with it, because the others could not read it. So all API servers get the key first
 * (ROTATE_ENCRYPT, phase trust), then all encrypt with it (issue), then existing objects are
 * rewritten (cmd/rotate.c). A single API server does not need the first phase. The current phase is
 * found on the machines. */
#include "cluster/plan/encrypt.h"

/* Whether the machine's API server encrypts, according to the manifest that the agent read. NULL:
 * no API server. */
static const json_t *api_encrypts(const struct member *m)
{
        return json_object_get(json_object_get(m->seen.said, "apiserver"), "encrypts");
}

/* Without the key, encrypted objects could not be read. */
static int encrypt_refuse(const struct member *m, struct error *err)
{
        error_set(err, EINVAL, EXIT_PREFLIGHT,
                "%s: the objects that its API server wrote into etcd are encrypted, and with encryption: none the API servers could not read it",
                m->node->name);
        return error_hint(err, "set encryption: secretbox (with hardening: kubeadm, too)");
}

int encrypt_look(struct site *s, struct error *err)
{
        enum rotate_phase *phase = &s->identity.rotation.phase[ROTATE_ENCRYPT];
        bool wanted = s->cluster->encryption.provider != ENCRYPTION_NONE, plain = false;
        for (size_t i = 0; i < s->count; i++) {
                const json_t *encrypts = api_encrypts(&s->members[i]);
                if (!wanted && json_is_true(encrypts))
                        return encrypt_refuse(&s->members[i], err);
                plain |= json_is_false(encrypts);
        }
        if (wanted && plain && *phase == ROTATE_NOT) {
                *phase = cluster_count(s->cluster, ROLE_CONTROL_PLANE) > 1 ? ROTATE_TRUST
                                                                           : ROTATE_ISSUE;
                s->identity.rotation.begun = true;
        }
        return 0;
}

const char *encrypt_text(const struct site *s)
{
        static const char *const sentences[] = {
                NULL,
                "objects that etcd holds in plain text will be encrypted: every API server receives the key, then all encrypt with it, then the objects are written again",
                "objects that etcd holds in plain text are encrypted: they are written again when the API servers have the key"
        };
        enum rotate_phase phase = s->identity.rotation.phase[ROTATE_ENCRYPT];
        return phase < ARRAY_SIZE(sentences) ? sentences[phase] : NULL;
}
