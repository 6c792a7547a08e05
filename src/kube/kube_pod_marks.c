// Labels and annotations of ours on pods and namespaces.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kube/kube_pod_int.h"
#include "kube/quantity.h"

const KubeLabelKey kube_labels[KUBE_LABELS] = {
#define X(id, key, meaning) {key, meaning},
#include "kube/kube_labels.def"
#undef X
};

static const char *mark(const json_t *annotations, KubeLabel l) {
    return kube_text(annotations, kube_labels[l].key);
}

static double amount(const json_t *annotations, KubeLabel l, double unit, const char **bad) {
    int64_t     milli = 0;
    const char *text = mark(annotations, l);
    if (text == NULL) return 0;
    Err e = unit < 1 ? quantity_milli(text, &milli) : quantity_units(text, &milli);
    if (e == ERR_OK && milli > 0) return (double)milli * unit;
    *bad = kube_labels[l].key;
    return 0;
}

void kube_fungible_read(const json_t *annotations, Fungible *out, const char **bad) {
    const char *on = mark(annotations, KUBE_LABEL_FUNGIBLE);
    *out = (Fungible){.on = -1};
    if (on != NULL) out->on = strcmp(on, "true") == 0;
    if (on != NULL && strcmp(on, "true") != 0 && strcmp(on, "false") != 0)
        *bad = kube_labels[KUBE_LABEL_FUNGIBLE].key;
    out->cores_min = amount(annotations, KUBE_LABEL_CORES_MIN, 1e-3, bad);
    out->cores_max = amount(annotations, KUBE_LABEL_CORES_MAX, 1e-3, bad);
    out->memory_min = amount(annotations, KUBE_LABEL_MEMORY_MIN, 1, bad);
    out->memory_max = amount(annotations, KUBE_LABEL_MEMORY_MAX, 1, bad);
    if (out->cores_max > 0 && out->cores_min > out->cores_max)
        *bad = kube_labels[KUBE_LABEL_CORES_MIN].key;
    if (out->memory_max > 0 && out->memory_min > out->memory_max)
        *bad = kube_labels[KUBE_LABEL_MEMORY_MIN].key;
}

// Of the pod, else of its namespace.
void kube_pod_settle(const KubeState *s, KubePod *p) {
    static const Fungible none = {0};
    const KubeEntry      *e = kube_table_find(&s->tables[KUBE_NAMESPACES], p->info.namespace_name);
    const Fungible       *a = &p->fungible, *b = e ? &((const KubeNamespace *)e)->fungible : &none;
    KubePodInfo          *i = &p->info;
    i->fungible = a->on >= 0 ? a->on > 0 : b->on > 0;
    i->cores_min = a->cores_min > 0 ? a->cores_min : b->cores_min;
    i->cores_max = a->cores_max > 0 ? a->cores_max : b->cores_max;
    i->memory_min = a->memory_min > 0 ? a->memory_min : b->memory_min;
    i->memory_max = a->memory_max > 0 ? a->memory_max : b->memory_max;
}

static void refuse_mark(PodReader *r, const char *key, const char *what) {
    pod_refuse(r, "metadata.annotations[%s]: it is not %s", key, what);
}

static void read_gang(PodReader *r) {
    const json_t *labels = json_object_get(r->meta, "labels");
    const char   *group = kube_text(labels, kube_labels[KUBE_LABEL_GANG].key);
    const char   *min = mark(r->annotations, KUBE_LABEL_GANG_MIN);
    int64_t       n = 0;
    if (group == NULL) group = kube_text(labels, kube_labels[KUBE_LABEL_POD_GROUP].key);
    if (group == NULL || *group == '\0') return;
    r->pod->info.group = kube_memory_word(r->memory, group)->text;
    if (min == NULL) return;
    if (quantity_units(min, &n) != ERR_OK || n < 1 || n > 1000000)
        refuse_mark(r, kube_labels[KUBE_LABEL_GANG_MIN].key, "a number from 1 to 1000000");
    else
        r->pod->info.group_min = (uint32_t)n;
}

static void read_fraction(PodReader *r) {
    const char *text = mark(r->annotations, KUBE_LABEL_GPU_FRACTION);
    int64_t     milli = 0;
    if (text == NULL) return;
    if (quantity_milli(text, &milli) != ERR_OK || milli < 1 || milli > 1000)
        refuse_mark(r, kube_labels[KUBE_LABEL_GPU_FRACTION].key, "a number above 0 up to 1");
    else
        r->pod->info.gpu_milli = (uint32_t)milli;
}

// Reports come from jobs: one that cannot be read is no report.
static void read_progress(PodReader *r) {
    const char *text = mark(r->annotations, KUBE_LABEL_PROGRESS);
    double      v[3] = {0};
    int         n = 0;
    if (text == NULL) return;
    while (n < 3 && *text != '\0') {
        char *end = NULL;
        v[n] = strtod(text, &end);
        if (end == text || !isfinite(v[n]) || v[n] < 0) return;
        text = end + strspn(end, " ");
        n++;
    }
    if (n < 2 || *text != '\0') return;
    r->pod->info.progress = v[0];
    r->pod->info.progress_rate = v[1];
    if (v[2] < 4e9) r->pod->info.progress_at = (TimeNs)(v[2] * 1e9);
}

static void read_tenant(PodReader *r) {
    const char *label = r->state->options.tenant_label, *tenant = NULL;
    if (label != NULL) tenant = kube_text(json_object_get(r->meta, "labels"), label);
    if (tenant == NULL || *tenant == '\0') tenant = r->pod->info.namespace_name;
    r->pod->info.tenant = kube_memory_word(r->memory, tenant)->text;
}

void pod_read_marks(PodReader *r) {
    const char     *bad = NULL, *model = mark(r->annotations, KUBE_LABEL_MODEL);
    const KubeWord *word = kube_memory_word(r->memory, model);
    r->pod->info.model = word != NULL && *word->text != '\0' ? word->text : NULL;
    read_tenant(r);
    read_gang(r);
    read_fraction(r);
    read_progress(r);
    kube_fungible_read(r->annotations, &r->pod->fungible, &bad);
    if (bad != NULL) refuse_mark(r, bad, "valid");
    kube_pod_settle(r->state, r->pod);
}
