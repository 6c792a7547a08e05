#include "kube/kube_metrics.h"

#include <math.h>
#include <string.h>

enum { TEXT_BYTES = 4 << 20 };

typedef enum CounterFamily {
#define X(id, name, label, help) FAMILY_##id,
#include "kube/kube_counter.def"
#undef X
    FAMILIES
} CounterFamily;

static const struct {
    const char *name, *help;
} families[FAMILIES] = {
#define X(id, name, label, help) {name, help},
#include "kube/kube_counter.def"
#undef X
};

static const struct {
    CounterFamily family;
    const char   *labels;
} counters[KUBE_COUNTERS] = {
#define X(counter, id, labels) {FAMILY_##counter, labels},
#include "kube/kube_counter_value.def"
#undef X
};

static const struct {
    const char *name, *label, *help;
    double      first;
    uint32_t    n;
} durations[KUBE_DURATIONS] = {
#define X(id, name, label, first, n, help) {name, label, help, first, n},
#include "kube/kube_duration.def"
#undef X
};

static const char *const verbs[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
enum { VERBS = sizeof verbs / sizeof *verbs };

void kube_metrics_count(KubeMetrics *m, KubeCounter c) { m->counts[c]++; }

static void observe(KubeMetrics *m, KubeDuration d, uint32_t series, double x) {
    KubeHistogram *h = &m->times[d][series];
    double         bound = durations[d].first;
    uint32_t       i = 0;
    while (i < durations[d].n && x > bound) i++, bound *= 2;
    h->counts[i < durations[d].n ? i : KUBE_BOUNDS]++;
    h->sum += x;
}

void kube_metrics_time(KubeMetrics *m, KubeDuration d, double seconds_or_number) {
    observe(m, d, 0, seconds_or_number);
}

void kube_metrics_sli(KubeMetrics *m, uint32_t attempts, double seconds) {
    uint32_t series = attempts > KUBE_SERIES ? KUBE_SERIES : attempts < 1 ? 1 : attempts;
    observe(m, KUBE_TIME_SLI, series - 1, seconds);
}

void kube_metrics_call(KubeMetrics *m, const char *verb, TimeNs took) {
    for (uint32_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i], verb) == 0) observe(m, KUBE_TIME_CALL, i, (double)took / 1e9);
}

static void head(StrBuf *s, const char *name, const char *type, const char *help) {
    str_buf_printf(s, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void label(StrBuf *s, const char *before, const char *key, const char *value) {
    str_buf_printf(s, "%s%s=\"", before, key);
    str_buf_label(s, value);
    str_buf_text(s, "\"");
}

static void value(StrBuf *s, const char *close, double x) {
    str_buf_text(s, close);
    str_buf_number(s, x);
    str_buf_text(s, "\n");
}

// Attempts have the profile too, as kube-scheduler's have.
static void put_counters(StrBuf *s, const KubeMetrics *m, const char *profile) {
    for (uint32_t f = 0; f < FAMILIES; f++) {
        head(s, families[f].name, "counter", families[f].help);
        for (uint32_t c = 0; c < KUBE_COUNTERS; c++) {
            bool some = counters[c].labels[0] != '\0';
            bool whole = f == FAMILY_ATTEMPTS || f == FAMILY_GROUP_ATTEMPTS;
            if (counters[c].family != f) continue;
            str_buf_text(s, families[f].name);
            if (some) str_buf_printf(s, "{%s", counters[c].labels);
            if (whole) label(s, ",", "profile", profile);
            value(s, some ? "} " : " ", (double)m->counts[c]);
        }
    }
}

// The labels of a series, without the closing brace; "" without labels.
static void put_series(StrBuf *s, KubeDuration d, uint32_t series, const KubeGauges *now,
                       const char *suffix) {
    str_buf_printf(s, "%s%s", durations[d].name, suffix);
    if (d == KUBE_TIME_ATTEMPT) {
        str_buf_text(s, "{result=\"scheduled\"");
        label(s, ",", "profile", now->profile);
    } else if (d == KUBE_TIME_SLI) {
        str_buf_printf(s, "{attempts=\"%u%s\"", series + 1, series + 1 == KUBE_SERIES ? "+" : "");
    } else if (d == KUBE_TIME_CALL) {
        str_buf_printf(s, "{verb=\"%s\"", verbs[series]);
        label(s, ",", "host", now->host);
    }
}

static uint64_t total(const KubeHistogram *h) {
    uint64_t n = 0;
    for (uint32_t i = 0; i <= KUBE_BOUNDS; i++) n += h->counts[i];
    return n;
}

static void put_histogram(StrBuf *s, KubeDuration d, uint32_t series, const KubeHistogram *h,
                          const KubeGauges *now) {
    bool     some = durations[d].label[0] != '\0';
    uint64_t n = 0;
    for (uint32_t i = 0; i <= durations[d].n; i++) {
        bool last = i == durations[d].n;
        n += h->counts[last ? KUBE_BOUNDS : i];
        put_series(s, d, series, now, "_bucket");
        str_buf_text(s, some ? ",le=\"" : "{le=\"");
        if (last)
            str_buf_text(s, "+Inf");
        else
            str_buf_number(s, ldexp(durations[d].first, (int)i));
        value(s, "\"} ", (double)n);
    }
    put_series(s, d, series, now, "_sum");
    value(s, some ? "} " : " ", h->sum);
    put_series(s, d, series, now, "_count");
    value(s, some ? "} " : " ", (double)n);
}

static void put_durations(StrBuf *s, const KubeMetrics *m, const KubeGauges *now) {
    for (uint32_t d = 0; d < KUBE_DURATIONS; d++) {
        head(s, durations[d].name, "histogram", durations[d].help);
        for (uint32_t i = 0; i < KUBE_SERIES; i++)
            if (i == 0 || total(&m->times[d][i]) > 0)
                put_histogram(s, (KubeDuration)d, i, &m->times[d][i], now);
    }
}

static void put_row(StrBuf *s, const char *name, const char *key, const char *of, double x) {
    str_buf_text(s, name);
    label(s, "{", key, of);
    value(s, "} ", x);
}

static void put_queues(StrBuf *s, const KubeGauges *g) {
    const char *name = "scheduler_pending_pods";
    head(s, name, "gauge", "Pending pods of this scheduler, by queue.");
    put_row(s, name, "queue", "active", g->active);
    put_row(s, name, "queue", "backoff", g->backoff);
    put_row(s, name, "queue", "unschedulable", g->unschedulable);
    put_row(s, name, "queue", "gated", g->gated);
}

static bool same_plugin(uint32_t a, uint32_t b) {
    return strcmp(kube_fit_plugin((KubeFitReason)a), kube_fit_plugin((KubeFitReason)b)) == 0;
}

// Several reasons are one plugin's: they are one row, at the first of them.
static void put_unfit(StrBuf *s, const KubeGauges *g) {
    const char *name = "scheduler_unschedulable_pods";
    head(s, name, "gauge", "Unschedulable pods, by what refuses most nodes.");
    for (uint32_t r = FIT_OK + 1; r < KUBE_FIT_REASONS; r++) {
        uint32_t n = 0, first = KUBE_FIT_REASONS;
        for (uint32_t k = KUBE_FIT_REASONS - 1; k > FIT_OK; k--)
            if (same_plugin(k, r)) n += g->unfit[k], first = k;
        if (first != r || n == 0) continue;
        str_buf_printf(s, "%s{plugin=\"%s\"", name, kube_fit_plugin((KubeFitReason)r));
        label(s, ",", "profile", g->profile);
        value(s, "} ", n);
    }
}

static void put_cache(StrBuf *s, const KubeGauges *g) {
    const char *name = "scheduler_cache_size";
    head(s, name, "gauge", "Objects held, by type.");
    put_row(s, name, "type", "nodes", g->nodes);
    put_row(s, name, "type", "pods", g->pods);
    put_row(s, name, "type", "assumed_pods", g->assumed);
    head(s, "cotenant_kube_frozen", "gauge", "1 while evictions and resizes are switched off.");
    value(s, "cotenant_kube_frozen ", g->frozen);
    if (g->lease == NULL) return;
    name = "leader_election_master_status";
    head(s, name, "gauge", "1 if this replica holds the lease.");
    put_row(s, name, "name", g->lease, g->leader);
}

static void put_watches(StrBuf *s, const KubeGauges *g) {
    const char *name = "cotenant_kube_relists_total";
    head(s, name, "counter", "Lists made anew because a watch could not resume, by collection.");
    for (uint32_t k = 0; k < KUBE_KINDS; k++)
        if (g->watched[k])
            put_row(s, name, "kind", kube_kind_name((KubeKind)k), (double)g->watches[k].relists);
    name = "cotenant_kube_watch_age_seconds";
    head(s, name, "gauge", "Time since something was heard of a collection.");
    for (uint32_t k = 0; k < KUBE_KINDS; k++) {
        const KubeWatchCounts *w = &g->watches[k];
        if (g->watched[k] && w->heard > 0)
            put_row(s, name, "kind", kube_kind_name((KubeKind)k),
                    (double)(g->now - w->heard) / 1e9);
    }
    name = "cotenant_kube_watch_synced";
    head(s, name, "gauge", "1 if the collection was listed and is being watched.");
    for (uint32_t k = 0; k < KUBE_KINDS; k++)
        if (g->watched[k])
            put_row(s, name, "kind", kube_kind_name((KubeKind)k), g->watches[k].synced);
}

typedef struct CallRows {
    StrBuf     *s;
    const char *host;
} CallRows;

static void put_call(void *self, const KubeApiCount *c) {
    CallRows *r = self;
    char      code[16];
    (void)snprintf(code, sizeof code, "%u", c->code);
    str_buf_text(r->s, "rest_client_requests_total");
    label(r->s, "{", "code", c->code == 0 ? "<error>" : code);
    label(r->s, ",", "method", c->verb);
    label(r->s, ",", "host", r->host);
    value(r->s, "} ", (double)c->n);
}

static void put_calls(StrBuf *s, const KubeGauges *g) {
    CallRows rows = {.s = s, .host = g->host};
    if (g->api == NULL) return;
    head(s, "rest_client_requests_total", "counter", "Calls to the API server, by status.");
    kube_api_counts(g->api, put_call, &rows);
}

static KubeGauges named(const KubeGauges *now) {
    KubeGauges g = *now;
    if (g.profile == NULL) g.profile = "cotenant";
    if (g.host == NULL) g.host = "";
    return g;
}

Err kube_metrics_text(const KubeMetrics *m, const KubeGauges *now, Arena *a, Str *out) {
    StrBuf     s;
    KubeGauges g = named(now);
    str_buf_begin(&s, a, TEXT_BYTES);
    put_counters(&s, m, g.profile);
    put_durations(&s, m, &g);
    put_queues(&s, &g);
    put_unfit(&s, &g);
    put_cache(&s, &g);
    put_watches(&s, &g);
    put_calls(&s, &g);
    head(&s, "cotenant_build_info", "gauge", "1; the version is a label.");
    value(&s, "cotenant_build_info{version=\"" COTENANT_VERSION "\"} ", 1);
    return str_buf_end(&s, out);
}

const char *kube_fit_plugin(KubeFitReason r) {
    switch (r) {
    case FIT_INSUFFICIENT:
    case FIT_PODS: return "NodeResourcesFit";
    case FIT_SELECTOR: return "NodeAffinity";
    case FIT_UNSCHEDULABLE: return "NodeUnschedulable";
    case FIT_TAINT: return "TaintToleration";
    case FIT_PORTS: return "NodePorts";
    case FIT_SPREAD: return "PodTopologySpread";
    case FIT_AFFINITY:
    case FIT_ANTI_AFFINITY:
    case FIT_EXISTING_ANTI_AFFINITY: return "InterPodAffinity";
    case FIT_VOLUME_NODE:
    case FIT_VOLUME_UNBOUND:
    case FIT_VOLUME_MISSING: return "VolumeBinding";
    case FIT_VOLUME_LIMIT: return "NodeVolumeLimits";
    case FIT_VOLUME_EXCLUSIVE: return "VolumeRestrictions";
    default: return "Cotenant";
    }
}

const char *kube_kind_name(KubeKind k) {
    static const char *const names[KUBE_KINDS] = {
        [KUBE_NODES] = "nodes",
        [KUBE_PODS_KIND] = "pods",
        [KUBE_NAMESPACES] = "namespaces",
        [KUBE_CLAIMS] = "persistentvolumeclaims",
        [KUBE_VOLUMES] = "persistentvolumes",
        [KUBE_STORAGE_CLASSES] = "storageclasses",
        [KUBE_CSI_NODES] = "csinodes",
        [KUBE_DISRUPTION_BUDGETS] = "poddisruptionbudgets",
        [KUBE_PRIORITY_CLASSES] = "priorityclasses",
        [KUBE_POD_GROUPS] = "podgroups",
        [KUBE_RESOURCE_CLAIMS] = "resourceclaims",
    };
    return names[k] != NULL ? names[k] : "others";
}
