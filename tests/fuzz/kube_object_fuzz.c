// Feeds lines of JSON to a KubeState as a watch would, then asks where pods fit. The first two
// characters of a line are the collection and what happens: '+' put, '-' gone, '*' a new list.
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "kube/kube_fit.h"
#include "tests/fuzz/fuzz.h"

static void feed(KubeState *s, const char *line, size_t len) {
    json_t  *o = NULL;
    KubeKind k = (KubeKind)((unsigned char)(line[0] - 'a') % KUBE_KINDS);
    if (json_parse("line", line + 2, len - 2, &o) != ERR_OK) return;
    if (line[1] == '*') kube_state_begin(s, k);
    if (line[1] == '-')
        kube_state_gone(s, k, o);
    else
        kube_state_put(s, k, o);
    if (line[1] == '*') kube_state_end(s, k);
    json_decref(o);
}

static void ask(KubeState *s, KubePod *p, KubeNode *const *nodes, uint32_t n) {
    uint64_t    bits[4] = {0};
    char        text[300];
    KubeVerdict why;
    kube_fit_nodes(s, p, bits);
    if (kube_fit_message(s, p, text, sizeof text, &why) != strlen(text)) abort();
    if (kube_pod_info(p)->group != NULL) (void)kube_state_gang(s, p);
    (void)kube_state_disruptions(s, p);
    for (uint32_t i = 0; i < n; i++) {
        bool fits = kube_fit(s, p, nodes[i], NULL, &why);
        if (fits != (why.reason == FIT_OK)) abort();
        if (fits && (bits[i / 64] >> i % 64 & 1) == 0) abort();
        if (fits && !kube_fit_ever(s, p, nodes[i], &why)) abort();
        (void)kube_fit_score(s, p, nodes[i]);
        if (fits) kube_state_assume(s, p, nodes[i]);
    }
}

FUZZ_TARGET(data, size) {
    KubeState             *s = NULL;
    KubeNode *const       *nodes;
    KubePod *const        *pods;
    const KubeStateOptions o = {.tenant_label = "team", .node_selector = "!skip"};
    if (kube_state_create(&s, &o) != ERR_OK) abort();
    for (size_t from = 0; from < size;) {
        const char *line = (const char *)data + from;
        const char *end = memchr(line, '\n', size - from);
        size_t      len = end != NULL ? (size_t)(end - line) : size - from;
        if (len > 2) feed(s, line, len);
        from += len + 1;
    }
    uint32_t n = kube_state_nodes(s, &nodes), n_pods = kube_state_pods(s, &pods);
    for (uint32_t i = 0; i < n_pods && i < 32; i++) ask(s, pods[i], nodes, n < 128 ? n : 128);
    for (uint32_t i = 0; i < n_pods; i++) kube_state_forget(s, pods[i]);
    kube_state_destroy(s);
    return 0;
}
