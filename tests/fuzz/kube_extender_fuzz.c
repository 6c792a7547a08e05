// Feeds requests to the extender and to progress reports, on a small cluster: responses are JSON,
// and what is filtered fits.
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_extender.h"
#include "kube/kube_progress.h"
#include "tests/fuzz/fuzz.h"

static void put(KubeState *s, KubeKind k, const char *text) {
    json_t *o = json_loads(text, 0, NULL);
    if (o == NULL) abort();
    kube_state_put(s, k, o);
    json_decref(o);
}

static KubeState *cluster(void) {
    KubeState *s = NULL;
    if (kube_state_create(&s, NULL) != ERR_OK) abort();
    put(s, KUBE_NODES,
        "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"},\"status\":{\"allocatable\":{\"cpu\":\"4\","
        "\"memory\":\"8Gi\",\"pods\":\"9\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
        "\"True\"}]}}");
    put(s, KUBE_PODS_KIND,
        "{\"metadata\":{\"namespace\":\"d\",\"name\":\"p\",\"uid\":\"p\",\"resourceVersion\":\"1\"}"
        ","
        "\"spec\":{\"schedulerName\":\"cotenant\",\"priority\":3,\"containers\":[{\"name\":\"c\","
        "\"resources\":{\"requests\":{\"cpu\":\"4\"}}}]},\"status\":{\"phase\":\"Pending\"}}");
    put(s, KUBE_PODS_KIND,
        "{\"metadata\":{\"namespace\":\"d\",\"name\":\"b\",\"uid\":\"b\",\"resourceVersion\":\"1\"}"
        ","
        "\"spec\":{\"schedulerName\":\"cotenant\",\"nodeName\":\"n\",\"containers\":[{\"name\":"
        "\"c\","
        "\"resources\":{\"requests\":{\"cpu\":\"1\"}}}]},\"status\":{\"phase\":\"Running\"}}");
    return s;
}

static void ask(const KubeExtender *x, KubeExtenderVerb v, const char *text, size_t len) {
    char *out = NULL;
    if (kube_extender_answer(x, v, text, len, &out) != ERR_OK) return;
    json_t *doc = json_loads(out, 0, NULL);
    if (doc == NULL) abort();
    if (v == EXTENDER_FILTER && json_array_size(json_object_get(doc, "NodeNames")) > 0) abort();
    json_decref(doc);
    free(out);
}

FUZZ_TARGET(data, size) {
    Arena        a;
    KubePod     *p;
    KubeNode    *n;
    const char  *fault, *text = (const char *)data;
    KubeReport   r;
    char         why[PROGRESS_WHY];
    KubeState   *s = cluster();
    KubeExtender x = {.state = s};
    if (arena_init(&a, 1 << 20) != ERR_OK) abort();
    for (uint32_t v = 0; v < EXTENDER_VERBS; v++)
        if (v != EXTENDER_BIND) ask(&x, (KubeExtenderVerb)v, text, size);
    if (kube_extender_bind(&x, text, size, &a, &p, &n, &fault) == ERR_OK && fault == NULL) abort();
    uint32_t status = kube_progress_read(s, text, size, INT64_C(1) << 60, &r, why);
    if (status == 200 && strcmp(kube_pod_info(r.pod)->name, "b") != 0) abort();
    arena_finish(&a);
    kube_state_destroy(s);
    return 0;
}
