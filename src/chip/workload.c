#include "chip/workload.h"

#include <string.h>

#include "base/text.h"
#include "chip/chip_file.h"
#include "contract/chip.h"
#include "model/zoo/zoo.h"

typedef struct Named {
    const char *name, *networks;
} Named;

static const Named named[] = {
#define X(name, networks, about) {#name, networks},
#include "chip/workload.def"
#undef X
    {NULL, NULL},
};

// Latency targets of the MLPerf Inference server scenario: ResNet-50 15 ms, SSD-ResNet34 100 ms,
// BERT 130 ms, DLRM 30 ms. Other networks get the target of their task.
typedef struct Target {
    const char *network;
    double      ms;
} Target;

static const Target targets[] = {
    {"alexnet", 15},
    {"squeezenet1_1", 15},
    {"vgg16", 15},
    {"googlenet", 15},
    {"inception_v3", 15},
    {"resnet18", 15},
    {"resnet34", 15},
    {"resnet50", 15},
    {"densenet121", 15},
    {"mobilenet_v1", 15},
    {"mobilenet_v2", 15},
    {"mobilenet_v3_large", 15},
    {"efficientnet_b0", 15},
    {"tiny_yolo_v2", 100},
    {"yolo_v3", 100},
    {"ssd_mobilenet_v1", 100},
    {"ssd_resnet34", 100},
    {"ssd_resnet34_512", 100},
    {"unet", 100},
    {"deeplab_v3", 100},
    {"bert_base", 130},
    {"bert_large", 130},
    {"mobile_bert", 130},
    {"dlrm", 30},
    {NULL, 0},
};

static bool is_file(const char *word) {
    size_t n = strlen(word);
    return strchr(word, '/') != NULL || (n > 5 && strcmp(word + n - 5, ".onnx") == 0);
}

static Err unknown(const char *word) {
    const char *known[128];
    uint32_t    count = 0;
    for (; named[count].name != NULL; count++) known[count] = named[count].name;
    for (uint32_t i = 0; zoo_entry(i) != NULL && count < 128; i++)
        known[count++] = zoo_entry(i)->name;
    const char *near = text_nearest(word, known, count);
    return err_set(ERR_ARG,
                   "no workload and no network '%s'%s%s%s; give light, heavy, mixed, a name of "
                   "'cotenant zoo list' or an ONNX file",
                   word, near != NULL ? " (did you mean " : "", near != NULL ? near : "",
                   near != NULL ? "?)" : "");
}

static Err find_network(const char *text, size_t n, Arena *a, const char **out) {
    const char *word = arena_printf(a, "%.*s", (int)n, text);
    *out = word;
    if (is_file(word)) return ERR_OK;
    for (uint32_t i = 0; zoo_entry(i) != NULL; i++)
        if (chip_file_same(zoo_entry(i)->name, word)) {
            *out = zoo_entry(i)->name;
            return ERR_OK;
        }
    return unknown(word);
}

static double target_of(const char *network) {
    for (uint32_t i = 0; targets[i].network != NULL; i++)
        if (strcmp(targets[i].network, network) == 0) return targets[i].ms;
    return 0;
}

static Err add(const char *network, Workload *w) {
    for (uint32_t i = 0; i < w->n; i++)
        if (strcmp(w->networks[i], network) == 0)
            return err_set(ERR_ARG, "workload '%s': %s is named twice", w->name, network);
    if (w->n == CHIP_TENANTS)
        return err_set(ERR_LIMIT, "workload '%s': more than %d networks", w->name, CHIP_TENANTS);
    w->networks[w->n] = network;
    w->target_ms[w->n++] = target_of(network);
    return ERR_OK;
}

Err workload_find(const char *what, Arena *a, Workload *out) {
    Workload w = {.name = arena_str(a, what),
                  .networks = arena_new(a, const char *, CHIP_TENANTS),
                  .target_ms = arena_new(a, double, CHIP_TENANTS)};
    for (uint32_t i = 0; named[i].name != NULL; i++)
        if (chip_file_same(named[i].name, what)) {
            w.name = named[i].name;
            what = named[i].networks;
            break;
        }
    for (const char *at = what;; at++) {
        size_t      n = strcspn(at, ",+");
        const char *network = "";
        TRY(find_network(at, n, a, &network));
        TRY(add(network, &w));
        at += n;
        if (*at == '\0') break;
    }
    *out = w;
    return ERR_OK;
}

Err workload_of_trace(const RequestTrace *t, Arena *a, Workload *out) {
    Workload w = {.name = t->name,
                  .networks = arena_new(a, const char *, CHIP_TENANTS),
                  .target_ms = arena_new(a, double, CHIP_TENANTS)};
    for (uint32_t i = 0; i < t->n_tenants; i++) {
        const char *network = t->tenants[i].network;
        if (find_network(network, strlen(network), a, &w.networks[i]) != ERR_OK)
            return err_add(ERR_ARG, "%s", t->name);
        w.target_ms[i] = target_of(w.networks[i]);
    }
    w.n = t->n_tenants;
    *out = w;
    return ERR_OK;
}
