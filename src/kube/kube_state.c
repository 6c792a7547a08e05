#include "kube/kube_state_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *kube_text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

const char *kube_meta(const json_t *object, const char *key) {
    return kube_text(json_object_get(object, "metadata"), key);
}

void *kube_grow(void *array, uint32_t n, uint32_t *room, size_t size) {
    if (n < *room) return array;
    *room = *room == 0 ? 4 : 2 * *room;
    array = realloc(array, *room * size);
    CHECK(array != NULL);
    return array;
}

bool kube_key(KubeKind k, const json_t *object, char *out, size_t room) {
    const char *name = kube_meta(object, "name"), *space = kube_meta(object, "namespace");
    bool        spaced = k == KUBE_PODS_KIND || k == KUBE_CLAIMS || k == KUBE_DISRUPTION_BUDGETS ||
                  k == KUBE_POD_GROUPS || k == KUBE_RESOURCE_CLAIMS;
    if (name == NULL) return false;
    if (spaced)
        (void)snprintf(out, room, "%s/%s", space != NULL ? space : "default", name);
    else
        (void)snprintf(out, room, "%s", name);
    return true;
}

static const char *keep(KubeState *s, const char *text, const char *otherwise) {
    return kube_memory_text(&s->memory, text != NULL ? text : otherwise);
}

static void set_resources(KubeState *s) {
    const char *const names[] = {"cpu", "memory", "ephemeral-storage", "pods",
                                 s->options.gpu_resource};
    for (uint32_t i = 0; i < KUBE_EXTENDED; i++)
        s->resources[s->n_resources++] = kube_memory_word(&s->memory, names[i]);
}

Err kube_state_create(KubeState **out, const KubeStateOptions *o) {
    static const KubeStateOptions none = {0};
    KubeState                    *s = calloc(1, sizeof *s);
    if (s == NULL) return err_set(ERR_LIMIT, "no memory for the state of a cluster");
    o = o != NULL ? o : &none;
    kube_words_init(&s->words);
    kube_memory_init(&s->memory, &s->words);
    for (int k = 0; k < KUBE_KINDS; k++) kube_table_init(&s->tables[k]);
    kube_table_init(&s->repel);
    s->plan = kube_plan_create();
    s->options = (KubeStateOptions){.scheduler_name = keep(s, o->scheduler_name, "cotenant"),
                                    .gpu_resource = keep(s, o->gpu_resource, "nvidia.com/gpu"),
                                    .tenant_label = keep(s, o->tenant_label, NULL),
                                    .namespaces = keep(s, o->namespaces, NULL)};
    set_resources(s);
    if (o->node_selector != NULL) {
        Err e = label_selector_parse(o->node_selector, &s->memory, &s->scope);
        if (e != ERR_OK) {
            kube_state_destroy(s);
            return err_add(e, "nodes in scope");
        }
    }
    *out = s;
    return ERR_OK;
}

static void forget_pod(KubeState *s, KubePod *p) {
    kube_detach(s, p);
    s->pods[p->at] = s->pods[--s->n_pods];
    s->pods[p->at]->at = p->at;
    s->n_waiting -= p->waits;
    kube_table_remove(&s->tables[KUBE_PODS_KIND], &p->entry);
    kube_pod_free(p);
    s->change++;
}

static void remove_entry(KubeState *s, KubeKind k, KubeEntry *e) {
    if (k == KUBE_PODS_KIND)
        forget_pod(s, (KubePod *)e);
    else if (k == KUBE_NODES)
        kube_node_remove(s, (KubeNode *)e);
    else
        kube_object_remove(s, k, e);
}

void kube_state_destroy(KubeState *s) {
    if (s == NULL) return;
    while (s->n_pods > 0) forget_pod(s, s->pods[0]);
    for (int k = 0; k < KUBE_KINDS; k++) {
        while (s->tables[k].n > 0) remove_entry(s, (KubeKind)k, s->tables[k].all[0]);
        kube_table_finish(&s->tables[k]);
    }
    kube_table_finish(&s->repel);
    kube_plan_free(s->plan);
    kube_memory_finish(&s->memory);
    kube_words_finish(&s->words);
    free(s->pods);
    free(s->nodes);
    free(s);
}

// What never goes back for one pod: an object without it is older than what is known.
static bool older(const KubePod *fresh, const KubePod *old) {
    const KubePodInfo *a = &fresh->info, *b = &old->info;
    if (strcmp(a->uid, b->uid) != 0) return a->created < b->created;
    return (b->node != NULL && a->node == NULL) || (b->terminating && !a->terminating) ||
           (kube_pod_over(old) && a->phase != b->phase);
}

static void count(KubeState *s, KubePod *p, KubeNode *assumed) {
    if (kube_pod_over(p)) return;
    if (p->info.node != NULL)
        kube_attach(s, p, kube_host(s, p->info.node));
    else if (assumed != NULL)
        kube_state_assume(s, p, assumed);
}

// The old object leaves after the new one is counted, so that the node's record outlives the
// change.
static void replace_pod(KubeState *s, KubePod *old, KubePod *p) {
    bool same = strcmp(old->info.uid, p->info.uid) == 0;
    if (same && old->info.progress_at > p->info.progress_at)
        kube_state_progress(p, old->info.progress, old->info.progress_rate, old->info.progress_at);
    kube_table_remove(&s->tables[KUBE_PODS_KIND], &old->entry);
    kube_table_add(&s->tables[KUBE_PODS_KIND], &p->entry);
    s->pods[p->at = old->at] = p;
    count(s, p, same && old->assumed ? old->host : NULL);
    kube_detach(s, old);
    s->n_waiting -= old->waits;
    kube_pod_free(old);
    s->version++;  // its own constraints may be lighter now
}

static void put_pod(KubeState *s, const json_t *object, KubePod *old) {
    const char *version = kube_meta(object, "resourceVersion"), *uid = kube_meta(object, "uid");
    if (old != NULL) old->entry.epoch = s->tables[KUBE_PODS_KIND].epoch;
    if (old != NULL && version != NULL && uid != NULL && *version != '\0' &&
        strcmp(version, old->info.version) == 0 && strcmp(uid, old->info.uid) == 0)
        return;
    KubePod *p = kube_pod_read(s, object);
    if (p == NULL || (old != NULL && older(p, old))) {
        kube_pod_free(p);
        return;
    }
    s->change++;
    s->n_waiting += p->waits;
    if (old != NULL) {
        replace_pod(s, old, p);
        return;
    }
    s->pods = kube_grow(s->pods, s->n_pods, &s->room_pods, sizeof(KubePod *));
    p->at = s->n_pods;
    s->pods[s->n_pods++] = p;
    kube_table_add(&s->tables[KUBE_PODS_KIND], &p->entry);
    count(s, p, NULL);
}

void kube_state_progress(KubePod *p, double iterations, double per_s, TimeNs at) {
    p->info.progress = iterations;
    p->info.progress_rate = per_s;
    p->info.progress_at = at;
}

void kube_state_put(KubeState *s, KubeKind k, const json_t *object) {
    char key[512];
    if (!kube_key(k, object, key, sizeof key)) return;
    if (k == KUBE_PODS_KIND)
        put_pod(s, object, (KubePod *)kube_table_find(&s->tables[k], key));
    else if (k == KUBE_NODES)
        kube_node_put(s, object);
    else
        kube_object_put(s, k, object);
}

static bool known(KubeKind k, const KubeEntry *e) {
    return k != KUBE_NODES || ((const KubeNode *)e)->known;
}

void kube_state_gone(KubeState *s, KubeKind k, const json_t *object) {
    char key[512];
    if (!kube_key(k, object, key, sizeof key)) return;
    KubeEntry  *e = kube_table_find(&s->tables[k], key);
    const char *uid = kube_meta(object, "uid"), *own = NULL;
    if (e == NULL || !known(k, e)) return;
    if (k == KUBE_PODS_KIND) own = ((const KubePod *)e)->info.uid;
    if (k == KUBE_NODES) own = ((const KubeNode *)e)->info.uid;
    if (own != NULL && uid != NULL && strcmp(own, uid) != 0) return;  // of an earlier namesake
    remove_entry(s, k, e);
}

void kube_state_begin(KubeState *s, KubeKind k) { s->tables[k].epoch++; }

void kube_state_end(KubeState *s, KubeKind k) {
    KubeTable *t = &s->tables[k];
    for (uint32_t i = t->n; i-- > 0;)
        if (i < t->n && t->all[i]->epoch != t->epoch && known(k, t->all[i]))
            remove_entry(s, k, t->all[i]);
}

uint64_t kube_state_version(const KubeState *s) { return s->version; }

uint32_t kube_state_nodes(const KubeState *s, KubeNode *const **out) {
    *out = s->nodes;
    return s->n_nodes;
}

uint32_t kube_state_pods(const KubeState *s, KubePod *const **out) {
    *out = s->pods;
    return s->n_pods;
}

const KubePodInfo  *kube_pod_info(const KubePod *p) { return &p->info; }
const KubeNodeInfo *kube_node_info(const KubeNode *n) { return &n->info; }

KubePod *kube_state_pod(const KubeState *s, const char *namespace_name, const char *name) {
    char key[512];
    (void)snprintf(key, sizeof key, "%s/%s", namespace_name, name);
    return (KubePod *)kube_table_find(&s->tables[KUBE_PODS_KIND], key);
}

KubeNode *kube_state_node(const KubeState *s, const char *name) {
    KubeNode *n = (KubeNode *)kube_table_find(&s->tables[KUBE_NODES], name);
    return n != NULL && n->in_scope ? n : NULL;
}

const char *kube_state_resource(const KubeState *s, KubeResource r) {
    return (uint32_t)r < s->n_resources ? s->resources[r]->text : NULL;
}
