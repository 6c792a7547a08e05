// Claims, their volumes, and devices.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kube/kube_fit_int.h"

static const KubeClaim *claim_of(const KubeState *s, const PodClaim *c) {
    return (const KubeClaim *)kube_table_find(&s->tables[KUBE_CLAIMS], c->key);
}

static const KubeVolume *volume_of(const KubeState *s, const KubeClaim *c) {
    if (c == NULL || c->volume == NULL) return NULL;
    return (const KubeVolume *)kube_table_find(&s->tables[KUBE_VOLUMES], c->volume);
}

static bool waits_for_consumer(const KubeState *s, const KubeClaim *c) {
    const char *name = c->class_name;
    if (c->volume != NULL || name == NULL || *name == '\0') return false;
    const KubeEntry *e = kube_table_find(&s->tables[KUBE_STORAGE_CLASSES], name);
    return e != NULL && ((const KubeClass *)e)->waits;
}

static KubeVerdict say(FitPlan *f, KubeFitReason reason, const char *fmt, ...) PRINTF(3, 4);
static KubeVerdict say(FitPlan *f, KubeFitReason reason, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(f->detail, sizeof f->detail, fmt, ap);
    va_end(ap);
    return (KubeVerdict){.reason = reason, .detail = f->detail};
}

static const KubePod *other_user(const KubeState *s, const KubePod *p, const PodClaim *c) {
    for (uint32_t i = 0; i < s->n_pods; i++) {
        const KubePod *x = s->pods[i];
        if (x->host == NULL || x == p || x->namespace_word != p->namespace_word) continue;
        for (uint32_t k = 0; k < x->n_claims; k++)
            if (strcmp(x->claims[k].key, c->key) == 0) return x;
    }
    return NULL;
}

static KubeVerdict judge_unbound(const KubeState *s, FitPlan *f, const PodClaim *c,
                                 const KubeClaim *x) {
    if (!waits_for_consumer(s, x))
        return say(f, FIT_VOLUME_UNBOUND,
                   "pod has unbound immediate PersistentVolumeClaims (claim %s)", c->name);
    if (x->selected_node == NULL)
        return say(f, FIT_UNSUPPORTED,
                   "spec.volumes[%s]: claim %s binds at its first consumer, which is not supported "
                   "unless a node was selected for it",
                   c->volume, c->name);
    return (KubeVerdict){0};
}

static KubeVerdict judge(const KubeState *s, FitPlan *f, const PodClaim *c) {
    const KubeClaim *x = claim_of(s, c);
    if (x == NULL && c->owned)
        return say(f, FIT_VOLUME_MISSING,
                   "persistentvolumeclaim \"%s\" of the ephemeral volume %s was not made yet",
                   c->name, c->volume);
    if (x == NULL)
        return say(f, FIT_VOLUME_MISSING, "persistentvolumeclaim \"%s\" not found", c->name);
    if (c->owned && (x->owner_uid == NULL || strcmp(x->owner_uid, f->pod->info.uid) != 0))
        return say(f, FIT_VOLUME_MISSING, "persistentvolumeclaim \"%s\" is not owned by pod %s",
                   c->name, f->pod->info.name);
    if (x->deleted)
        return say(f, FIT_VOLUME_MISSING, "persistentvolumeclaim \"%s\" is being deleted", c->name);
    if (x->lost)
        return say(f, FIT_VOLUME_MISSING,
                   "persistentvolumeclaim \"%s\" lost its persistentvolume \"%s\"", c->name,
                   x->volume != NULL ? x->volume : "");
    if (!x->bound) return judge_unbound(s, f, c, x);
    if (volume_of(s, x) == NULL)
        return say(f, FIT_VOLUME_MISSING,
                   "persistentvolumeclaim \"%s\": persistentvolume \"%s\" not found", c->name,
                   x->volume);
    return (KubeVerdict){0};
}

KubeVerdict fit_plan_volumes(const KubeState *s, FitPlan *f, bool *always) {
    *always = true;
    for (uint32_t i = 0; i < f->pod->n_claims; i++) {
        KubeVerdict v = judge(s, f, &f->pod->claims[i]);
        if (v.reason != FIT_OK) return v;
    }
    *always = false;
    for (uint32_t i = 0; i < f->pod->n_claims; i++) {
        const KubeClaim *x = claim_of(s, &f->pod->claims[i]);
        const KubePod   *user = x->exclusive ? other_user(s, f->pod, &f->pod->claims[i]) : NULL;
        if (user != NULL)
            return say(f, FIT_VOLUME_EXCLUSIVE, "claim %s is in use by pod %s",
                       f->pod->claims[i].name, user->info.name);
    }
    return (KubeVerdict){0};
}

static const struct {
    const char *key, *old;
} zones[] = {{"topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"},
             {"topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"}};

static const char *label_of(Labels l, const char *key) {
    for (uint32_t i = 0; i < l.n; i++)
        if (strcmp(l.at[i].key->text, key) == 0) return l.at[i].value->text;
    return NULL;
}

// "a__b": any of them.
static bool one_of(const char *set, const char *value) {
    size_t len = strlen(value);
    for (const char *at = set; at != NULL;) {
        const char *end = strstr(at, "__");
        size_t      n = end != NULL ? (size_t)(end - at) : strlen(at);
        if (n == len && strncmp(at, value, n) == 0) return true;
        at = end != NULL ? end + 2 : NULL;
    }
    return false;
}

// A node without labels of zones is in all of them.
static bool in_zones(const KubeVolume *v, const KubeNode *n) {
    const char *of_node[2];
    for (int i = 0; i < 2; i++) {
        of_node[i] = label_of(n->labels, zones[i].key);
        if (of_node[i] == NULL) of_node[i] = label_of(n->labels, zones[i].old);
    }
    for (int i = 0; i < 2 && (of_node[0] != NULL || of_node[1] != NULL); i++) {
        const char *set = label_of(v->labels, zones[i].key);
        if (set == NULL) set = label_of(v->labels, zones[i].old);
        if (set != NULL && (of_node[i] == NULL || !one_of(set, of_node[i]))) return false;
    }
    return true;
}

bool fit_check_volumes(const FitQuery *q, KubeVerdict *why) {
    for (uint32_t i = 0; i < q->pod->n_claims; i++) {
        const KubeClaim  *c = claim_of(q->state, &q->pod->claims[i]);
        const KubeVolume *v = volume_of(q->state, c);
        const char       *name = q->pod->claims[i].name;
        if (c == NULL) return fit_refuse(why, FIT_VOLUME_MISSING, name);
        if (!c->bound && strcmp(c->selected_node, q->node->word->text) != 0)
            return fit_refuse(why, FIT_VOLUME_NODE, name);
        if (v != NULL &&
            (!node_terms_match(&v->nodes, q->node->labels, q->node->word) || !in_zones(v, q->node)))
            return fit_refuse(why, FIT_VOLUME_NODE, name);
    }
    return true;
}

static bool mounts(const KubeState *s, const KubePod *p, uint32_t claims, const KubeVolume *v) {
    for (uint32_t i = 0; i < claims; i++)
        if (volume_of(s, claim_of(s, &p->claims[i])) == v) return true;
    return false;
}

// Volumes of the driver that the pod mounts and the first `before` pods of the node do not.
static int64_t fresh_volumes(const FitQuery *q, const KubePod *p, uint32_t before,
                             const char *driver) {
    int64_t n = 0;
    for (uint32_t i = 0; i < p->n_claims; i++) {
        const KubeVolume *v = volume_of(q->state, claim_of(q->state, &p->claims[i]));
        if (v == NULL || v->driver == NULL || strcmp(v->driver, driver) != 0) continue;
        bool seen = mounts(q->state, p, i, v);
        for (uint32_t k = 0; k < before && !seen; k++)
            seen = q->node->pods[k] != q->pod &&
                   mounts(q->state, q->node->pods[k], q->node->pods[k]->n_claims, v);
        n += !seen;
    }
    return n;
}

static bool within(const FitQuery *q, const CsiLimit *l) {
    int64_t fresh = fresh_volumes(q, q->pod, q->node->n_pods, l->driver), n = fresh;
    for (uint32_t i = 0; i < q->node->n_pods && fresh > 0; i++)
        if (q->node->pods[i] != q->pod) n += fresh_volumes(q, q->node->pods[i], i, l->driver);
    return fresh == 0 || n <= l->most;
}

bool fit_check_limits(const FitQuery *q, KubeVerdict *why) {
    const KubeEntry   *e = kube_table_find(&q->state->tables[KUBE_CSI_NODES], q->node->word->text);
    const KubeCsiNode *c = (const KubeCsiNode *)e;
    for (uint32_t i = 0; c != NULL && i < c->n; i++)
        if (!within(q, &c->limits[i]))
            return fit_refuse(why, FIT_VOLUME_LIMIT, c->limits[i].driver);
    return true;
}

bool fit_check_devices(const FitQuery *q, KubeVerdict *why) {
    for (uint32_t i = 0; i < q->pod->n_resource_claims; i++) {
        const char              *key = q->pod->resource_claims[i];
        const KubeResourceClaim *c = (const KubeResourceClaim *)kube_table_find(
            &q->state->tables[KUBE_RESOURCE_CLAIMS], key);
        if (c == NULL || !c->allocated || c->full)
            return fit_refuse(why, FIT_UNSUPPORTED,
                              "spec.resourceClaims: only claims that are allocated are supported");
        if (!node_terms_match(&c->nodes, q->node->labels, q->node->word))
            return fit_refuse(why, FIT_SELECTOR, key);
    }
    return true;
}
