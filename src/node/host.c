#include "node/host.h"

#include "kernel/probe.h"

enum { ARENA_SHIFT = 26, DISPATCH_NS = 5000 };

// Every core count while they fit, then doubling.
static void choose_counts(Host *h, uint32_t cores) {
    for (uint32_t n = 1; n < cores && h->n_counts + 1 < PROFILE_COUNTS;
         n += cores > PROFILE_COUNTS ? n : 1)
        h->counts[h->n_counts++] = n;
    h->counts[h->n_counts++] = cores;
}

static uint8_t slice_of(const Cpu *c, uint32_t os) {
    for (uint32_t i = 0; i < c->n_threads; i++)
        if (c->threads[i].os == os && c->threads[i].l3 != CPU_NO_L3)
            return (uint8_t)(c->threads[i].l3 % CORES_MAX);
    return 0;
}

static void describe(Host *h, uint32_t cores, const uint32_t *cpus) {
    uint8_t *slices = arena_new(&h->arena, uint8_t, cores), n = 0;
    for (uint32_t i = 0; i < cores; i++) {
        uint32_t k = 0;
        slices[i] = slice_of(&h->cpu, cpus[i]);
        while (k < i && slice_of(&h->cpu, cpus[k]) != slices[i]) k++;
        slices[i] = k < i ? slices[k] : n++;
    }
    h->machine = (NodeMachine){.n_cores = cores,
                               .n_slices = n,
                               .slice_of = slices,
                               .slice_bytes = (float)h->pressure.l3_bytes,
                               .dram_bytes_ns = (float)h->pressure.dram_all,
                               .dispatch_ns = DISPATCH_NS};
}

static Err open_host(Host *h, uint32_t cores, const char *store) {
    uint32_t cpus[CORES_MAX];
    Probe    probe;
    TRY(isa_choose(&h->isa));
    TRY(cpu_read(&h->arena, &cgroup_roots, &h->cpu));
    if (cores == 0) cores = cpu_budget(&h->cpu, &cgroup_roots).cores;
    if (cores > CORES_MAX) cores = CORES_MAX;
    uint32_t got = cpu_pick(&h->cpu, cores, cpus);
    for (uint32_t i = got; i < cores; i++) cpus[i] = cpus[0];
    TRY(team_create(&h->team, cores, got == cores ? cpus : NULL));
    TRY(probe_machine(&h->cpu, h->isa, h->team, true, (ProgressSink){0}, &probe));
    h->pressure = pressure_of(&h->cpu, &probe);
    profile_store_open(&h->store, store, &h->cpu, h->isa);
    choose_counts(h, cores);
    describe(h, cores, cpus);
    return ERR_OK;
}

Err host_open(Host *h, uint32_t cores, const char *store) {
    *h = (Host){0};
    TRY(arena_init(&h->arena, (size_t)1 << ARENA_SHIFT));
    Err e = open_host(h, cores, store);
    if (e != ERR_OK) host_close(h);
    return e;
}

Err host_check_store(const char *store) { return profile_store_check(store); }

void host_quiet(Host *h) {
    team_destroy(h->team);
    h->team = NULL;
}

void host_close(Host *h) {
    host_quiet(h);
    profile_store_close(&h->store);
    arena_finish(&h->arena);
    *h = (Host){0};
}
