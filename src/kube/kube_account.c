// What is counted where: pods on their nodes, bound or assumed, and their anti-affinity.
#include <stdlib.h>
#include <string.h>

#include "kube/kube_state_int.h"

uint32_t kube_resource(KubeState *s, const char *name, uint32_t most) {
    for (uint32_t i = 0; i < s->n_resources; i++)
        if (strcmp(s->resources[i]->text, name) == 0) return i;
    if (s->n_resources >= most) return KUBE_RESOURCES;
    s->resources[s->n_resources] = kube_memory_word(&s->memory, name);
    return s->n_resources++;
}

KubeNode *kube_host(KubeState *s, const char *name) {
    KubeNode *n = (KubeNode *)kube_table_find(&s->tables[KUBE_NODES], name);
    if (n != NULL) return n;
    n = calloc(1, sizeof *n);
    CHECK(n != NULL);
    kube_memory_init(&n->name_memory, &s->words);
    kube_memory_init(&n->memory, &s->words);
    n->word = kube_memory_word(&n->name_memory, name);
    n->info = (KubeNodeInfo){.name = n->word->text,
                             .uid = "",
                             .gpu_type = "",
                             .rack = "",
                             .unsupported = "the node was deleted"};
    n->entry.key = n->word->text;
    kube_table_add(&s->tables[KUBE_NODES], &n->entry);
    return n;
}

void kube_host_drop(KubeState *s, KubeNode *n) {
    if (n->known || n->n_pods > 0) return;
    kube_table_remove(&s->tables[KUBE_NODES], &n->entry);
    kube_node_free(n);
}

static void repel_add(KubeState *s, KubePod *p, PodTerm *t) {
    if (t->identity == NULL) return;
    RepelGroup *g = (RepelGroup *)kube_table_find(&s->repel, t->identity->text);
    if (g == NULL) {
        g = calloc(1, sizeof *g);
        CHECK(g != NULL);
        g->entry.key = t->identity->text;
        kube_table_add(&s->repel, &g->entry);
    }
    g->members = kube_grow(g->members, g->n, &g->room, sizeof *g->members);
    t->group_at = g->n;
    g->members[g->n++] = (struct RepelMember){p, t};
}

static void repel_drop(KubeState *s, PodTerm *t) {
    if (t->identity == NULL) return;
    RepelGroup *g = (RepelGroup *)kube_table_find(&s->repel, t->identity->text);
    g->members[t->group_at] = g->members[--g->n];
    g->members[t->group_at].term->group_at = t->group_at;
    if (g->n > 0) return;
    kube_table_remove(&s->repel, &g->entry);
    free(g->members);
    free(g);
}

void kube_attach(KubeState *s, KubePod *p, KubeNode *n) {
    n->pods = kube_grow(n->pods, n->n_pods, &n->room, sizeof(KubePod *));
    p->host = n;
    p->host_at = n->n_pods;
    n->pods[n->n_pods++] = p;
    for (uint32_t i = 0; i < KUBE_RESOURCES; i++) n->info.used.of[i] += p->info.requests.of[i];
    n->info.gpu_milli += p->info.requests.of[KUBE_GPU] * p->info.gpu_milli;
    for (uint32_t i = 0; i < p->anti.n; i++) repel_add(s, p, &p->anti.at[i]);
    if (s->n_waiting > 0) s->version++;  // it may be what another waits for
    s->change++;
}

void kube_detach(KubeState *s, KubePod *p) {
    KubeNode *n = p->host;
    if (n == NULL) return;
    n->pods[p->host_at] = n->pods[--n->n_pods];
    n->pods[p->host_at]->host_at = p->host_at;
    for (uint32_t i = 0; i < KUBE_RESOURCES; i++) n->info.used.of[i] -= p->info.requests.of[i];
    n->info.gpu_milli -= p->info.requests.of[KUBE_GPU] * p->info.gpu_milli;
    for (uint32_t i = 0; i < p->anti.n; i++) repel_drop(s, &p->anti.at[i]);
    p->host = NULL;
    p->assumed = false;
    s->version++;
    s->change++;
    kube_host_drop(s, n);
}

bool kube_pod_over(const KubePod *p) {
    return p->info.phase == POD_SUCCEEDED || p->info.phase == POD_FAILED;
}

void kube_state_assume(KubeState *s, KubePod *p, KubeNode *n) {
    if (kube_pod_over(p) || (p->host != NULL && !p->assumed)) return;  // what the API says counts
    if (p->host == n) return;
    kube_detach(s, p);
    kube_attach(s, p, n);
    p->assumed = true;
}

void kube_state_forget(KubeState *s, KubePod *p) {
    if (p->assumed) kube_detach(s, p);
}

const KubeNode *kube_state_assumed(const KubeState *s, const KubePod *p) {
    (void)s;
    return p->assumed ? p->host : NULL;
}
