// cotenant machine: CPU, caches and memory of this machine, the CPU budget, and measured rates.
#include <stdio.h>

#include "base/term.h"
#include "base/table.h"
#include "cli/commands.h"
#include "kernel/probe.h"

typedef struct Machine {
    Cpu        cpu;
    CpuBudget  budget;
    uint64_t   memory;
    const Isa *isa;
    Probe      probe;
} Machine;

static Err measure(Machine *m, uint32_t threads, bool quick, bool show) {
    uint32_t cpus[TEAM_MAX];
    Team    *team = NULL;
    Progress p;
    uint32_t got = cpu_pick(&m->cpu, threads, cpus);
    TRY(team_create(&team, threads, got == threads ? cpus : NULL));
    if (show) progress_begin(&p, stderr, clock_monotonic(), "measuring", 1);
    ProgressSink sink = show ? progress_sink(&p) : (ProgressSink){0};
    Err          e = probe_machine(&m->cpu, m->isa, team, quick, sink, &m->probe);
    if (show) progress_end(&p);
    team_destroy(team);
    return e;
}

static Err measure_all(Arena *a, int64_t threads, bool quick, Machine *m) {
    TRY(isa_choose(&m->isa));
    TRY(cpu_read(a, &cgroup_roots, &m->cpu));
    m->budget = cpu_budget(&m->cpu, &cgroup_roots);
    m->memory = cpu_mem_budget(&cgroup_roots);
    uint32_t n = threads > 0 ? (uint32_t)threads : m->budget.cores;
    return measure(m, n < TEAM_MAX ? n : TEAM_MAX, quick, term_is_tty(stderr));
}

static void features_text(const Cpu *c, char *out, size_t size) {
    size_t at = 0;
    (void)snprintf(out, size, "none");
    for (CpuFeature f = 0; f < CPU_FEATURES; f++) {
        if (!cpu_has(c, f) || at >= size) continue;
        int n = snprintf(out + at, size - at, "%s%s", at > 0 ? " " : "", cpu_feature_name(f));
        at += n > 0 ? (size_t)n : 0;
    }
}

static void size_text(size_t bytes, char *out, size_t size) {
    if (bytes == 0)
        (void)snprintf(out, size, "unknown");
    else if (bytes < (size_t)1 << 20)
        (void)snprintf(out, size, "%zu KB", bytes >> 10);
    else
        (void)snprintf(out, size, "%.4g MB", (double)bytes / (1 << 20));
}

static void print_inventory(const Machine *m) {
    const Cpu *c = &m->cpu;
    char       features[256], l1[32], l2[32], l3[32];
    features_text(c, features, sizeof features);
    size_text(c->l1d_bytes, l1, sizeof l1);
    size_text(c->l2_bytes, l2, sizeof l2);
    size_text(c->l3_bytes, l3, sizeof l3);
    printf("cpu           %s\n", c->model);
    printf("features      %s\n", features);
    printf("kernels       %s, %u floats per vector\n", m->isa->name, m->isa->lanes);
    printf("cores         %u present, %u allowed, %u in the budget", m->budget.present,
           m->budget.allowed, m->budget.cores);
    if (m->budget.quota_milli != INT64_MAX)
        printf(" (quota %.3g)", (double)m->budget.quota_milli / 1000);
    printf("\ncaches        L1 %s and L2 %s per core, L3 %s", l1, l2, l3);
    if (c->n_l3 > 1) printf(" (%u of them)", c->n_l3);
    printf("\nmemory        %.1f GB\n\n", (double)m->memory / 1e9);
}

static void rate_row(Table *t, const char *what, const char *unit, ProbeRate r, bool sized) {
    char size[32];
    size_text(r.bytes, size, sizeof size);
    table_row(t);
    table_textf(t, sized ? "%s, %s per core" : "%s", what, size);
    table_text(t, unit);
    if (sized && r.bytes == 0) return;
    table_real(t, r.one);
    table_real(t, r.all);
}

static void add_rates(const Probe *p, Table *t) {
    rate_row(t, "multiply-add", "GFLOP/s", p->fma, false);
    for (ProbeLevel l = 0; l < PROBE_LEVELS; l++) {
        char name[32];
        (void)snprintf(name, sizeof name, "read %s", probe_level_name(l));
        rate_row(t, name, "GB/s", p->read[l], true);
    }
    rate_row(t, "triad DRAM", "GB/s", p->triad, true);
}

static void spread_line(const char *what, ProbeSpread s) {
    if (s.samples == 0)
        printf("%-24s not measured: one core\n", what);
    else
        printf("%-24s min %.0f ns, median %.0f, p90 %.0f\n", what, s.least, s.median, s.p90);
}

static Err print_machine(const Machine *m, Arena *a) {
    const Probe *p = &m->probe;
    char         all[32];
    (void)snprintf(all, sizeof all, "%u core%s", p->cores, p->cores > 1 ? "s" : "");
    const Column cols[] = {
        {.key = "what", .head = "measured"},
        {.key = "unit", .head = ""},
        {.key = "one", .head = "1 core", .decimals = 1},
        {.key = "all", .head = all, .decimals = 1},
    };
    Table t;
    table_init(&t, a, cols, 4);
    add_rates(p, &t);
    print_inventory(m);
    TRY(table_print(&t, stdout));
    printf("\n");
    spread_line("core-to-core round trip", p->hop);
    spread_line("thread wake-up", p->wake);
    printf("%-24s %.0f ns; of thread CPU time %.0f ns\n", "clock read", p->clock_ns,
           p->thread_clock_ns);
    if (p->hop.samples > 0 && p->hop.p90 > 3 * p->hop.least)
        printf("\nThe core-to-core round trip varies: the host moves the virtual CPUs, or the "
               "machine is "
               "busy.\n");
    return ERR_OK;
}

static json_t *rate_json(ProbeRate r) {
    return json_pack("{s:I,s:f,s:f}", "bytes", (json_int_t)r.bytes, "one", r.one, "all", r.all);
}

static json_t *spread_json(ProbeSpread s) {
    if (s.samples == 0) return json_null();
    return json_pack("{s:f,s:f,s:f}", "least", s.least, "median", s.median, "p90", s.p90);
}

static json_t *cpu_json(const Machine *m) {
    const Cpu *c = &m->cpu;
    json_t    *features = json_array();
    for (CpuFeature f = 0; f < CPU_FEATURES; f++)
        if (cpu_has(c, f)) json_array_append_new(features, json_string(cpu_feature_name(f)));
    json_t *caches = json_pack("{s:I,s:I,s:I,s:i}", "l1_bytes", (json_int_t)c->l1d_bytes,
                               "l2_bytes", (json_int_t)c->l2_bytes, "l3_bytes",
                               (json_int_t)c->l3_bytes, "l3s", (int)c->n_l3);
    return json_pack("{s:s,s:o,s:s,s:i,s:i,s:i,s:i,s:i,s:o,s:I}", "cpu", c->model, "features",
                     features, "isa", m->isa->name, "lanes", (int)m->isa->lanes, "cores",
                     (int)m->budget.cores, "cores_present", (int)m->budget.present, "cores_allowed",
                     (int)m->budget.allowed, "cores_measured", (int)m->probe.cores, "caches",
                     caches, "memory_bytes", (json_int_t)m->memory);
}

static int print_json(const Machine *m) {
    const Probe *p = &m->probe;
    json_t      *doc = cpu_json(m), *read = json_object();
    for (ProbeLevel l = 0; l < PROBE_LEVELS; l++)
        if (p->read[l].bytes > 0)
            json_object_set_new(read, probe_level_name(l), rate_json(p->read[l]));
    json_object_set_new(doc, "fma_gflops",
                        json_pack("{s:f,s:f}", "one", p->fma.one, "all", p->fma.all));
    json_object_set_new(doc, "read_gbs", read);
    json_object_set_new(doc, "triad_gbs", rate_json(p->triad));
    json_object_set_new(doc, "round_trip_ns", spread_json(p->hop));
    json_object_set_new(doc, "wake_ns", spread_json(p->wake));
    json_object_set_new(doc, "clock_ns", json_real(p->clock_ns));
    json_object_set_new(doc, "thread_clock_ns", json_real(p->thread_clock_ns));
    return command_json(doc);
}

int cmd_machine(const Command *c, int argc, char **argv) {
    bool         json = false, quick = false;
    int64_t      threads = 0;
    const ArgRow rows[] = {
        {"quick", ARG_FLAG, &quick, NULL, "measure for half a second", 0, 0},
        {"threads", ARG_INT, &threads, "N", "number of threads (default: the CPU budget)", 1,
         TEAM_MAX},
        {"json", ARG_FLAG, &json, NULL, "one JSON document on stdout", 0, 0},
    };
    int code = args_parse(c, rows, 3, argc, argv, NULL, 0, 0, NULL);
    if (code >= 0) return code;
    Arena   a = {0};
    Machine m = {0};
    Err     e = arena_init(&a, (size_t)1 << 26);
    if (e == ERR_OK) e = measure_all(&a, threads, quick, &m);
    if (e == ERR_OK && !json) e = print_machine(&m, &a);
    code = e != ERR_OK ? command_failed(e) : json ? print_json(&m) : 0;
    arena_finish(&a);
    return code;
}
