// Model of a simulated machine: times of networks by cores and interference level, bytes moved,
// versions kept per layer and how often interference changes the best version.
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "node/node_model.h"

static const char *const networks[] = {"mobilenet_v2", "efficientnet_b0", "tiny_yolo_v2",
                                       "resnet50",     "googlenet",       "ssd_resnet34",
                                       "bert_large"};

static double moved_mb(const NodeModel *m, uint32_t k, uint32_t level) {
    const uint8_t *picks = node_best_versions(m, k, level);
    double         sum = 0;
    for (uint32_t l = 0; l < m->n_layers; l++)
        sum += (double)m->layers[l].versions[picks[l]].dram_bytes[k];
    return sum / 1e6;
}

static void print_times(const NodeModel *m) {
    static const uint32_t cores[] = {1, 4, 8, 16, 32, 64}, levels[] = {0, 5, 9};
    for (uint32_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        printf("  level %u: ms", levels[i]);
        for (uint32_t c = 0; c < sizeof cores / sizeof *cores; c++) {
            uint32_t k = node_count_index(m, cores[c]);
            printf("  %u: %.2f (solo %.2f, %.0f MB)", m->counts[k],
                   (double)node_rest(m, m->rest_best, 0, k, levels[i]) / 1e6,
                   (double)node_rest(m, m->rest_solo, 0, k, levels[i]) / 1e6,
                   moved_mb(m, k, levels[i]));
        }
        printf("\n");
    }
}

static void print_versions(const NodeModel *m) {
    uint32_t kept[NODE_VERSIONS + 1] = {0}, changed[4] = {0};
    for (uint32_t l = 0; l < m->n_layers; l++) kept[m->layers[l].n_versions]++;
    printf("  layers by versions kept:");
    for (uint32_t i = 1; i <= NODE_VERSIONS; i++) printf(" %u:%u", i, kept[i]);
    static const uint32_t cores[] = {4, 8, 16, 32};
    printf("; picks that differ between levels 0 and 9 on 4, 8, 16, 32 cores:");
    for (uint32_t c = 0; c < 4; c++) {
        uint32_t k = node_count_index(m, cores[c]);
        for (uint32_t l = 0; l < m->n_layers; l++)
            changed[c] += node_best_versions(m, k, 0)[l] != node_best_versions(m, k, 9)[l];
        printf(" %u", changed[c]);
    }
    printf(" of %u\n", m->n_layers);
}

static void print_layers(const NodeModel *m, uint32_t cores) {
    uint32_t k = node_count_index(m, cores);
    for (uint32_t l = 0; l < m->n_layers; l++) {
        const NodeLayer *y = &m->layers[l];
        printf("    %3u %-40.40s", l, y->name);
        for (uint32_t v = 0; v < y->n_versions; v++)
            printf(" | %4u %.0f/%.0f/%.0fus %.2fMB", y->versions[v].tasks,
                   (double)node_time(m, l, v, k, 0) / 1e3, (double)node_time(m, l, v, k, 5) / 1e3,
                   (double)node_time(m, l, v, k, 9) / 1e3,
                   (double)y->versions[v].dram_bytes[k] / 1e6);
        printf("\n");
    }
}

static Err study(const char *network, const NodeMachineSpec *spec, Arena *a, const char *layers) {
    NodeModel m;
    size_t    mark = a->used;
    TimeNs    begin = clock_now(clock_monotonic());
    TRY(model_of_zoo(network, spec, a, &m));
    printf("%s: %u layers, worked out in %.0f ms, %zu KB\n", network, m.n_layers,
           (double)(clock_now(clock_monotonic()) - begin) / 1e6, (a->used - mark) >> 10);
    print_times(&m);
    print_versions(&m);
    if (layers != NULL && strcmp(layers, network) == 0) print_layers(&m, 8);
    arena_rewind(a, mark);
    return ERR_OK;
}

int main(int argc, char **argv) {
    NodeMachineSpec spec;
    Arena           a;
    Err             e = arena_init(&a, (size_t)1 << 32);
    if (e == ERR_OK) e = machine_load(argc > 1 ? argv[1] : "server64", &a, &spec);
    for (size_t i = 0; e == ERR_OK && i < sizeof networks / sizeof *networks; i++)
        e = study(networks[i], &spec, &a, argc > 2 ? argv[2] : NULL);
    if (e != ERR_OK) fprintf(stderr, "%s\n", err_why());
    return e == ERR_OK ? 0 : 1;
}
