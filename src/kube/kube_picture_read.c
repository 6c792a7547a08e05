#include "kube/kube_picture_read.h"

#include <stdlib.h>
#include <string.h>

#include "kube/kube_task_field.h"

enum {
    SLOTS_MOST = 1 << 20,
    SERVERS_MOST = 1 << 16,
    TENANTS_MOST = 1 << 16,
    SETS_MOST = 1 << 16,
    GPUS_MOST = 1 << 20
};

void kube_picture_read_init(KubePictureRead *x, uint32_t n_classes) {
    *x = (KubePictureRead){.n_classes = n_classes};
}

static void free_server(KubeServer *s) {
    free((char *)(uintptr_t)s->name);
    free((char *)(uintptr_t)s->type);
    free((char *)(uintptr_t)s->rack);
}

static void free_slices(ClusterTask *t) {
    free((ClusterSlice *)(uintptr_t)t->slices);
    t->slices = NULL;
    t->n_slices = 0;
}

static void drop_sets(KubePictureRead *x) {
    for (uint32_t i = 0; i < x->n_sets; i++) free(x->sets[i]);
    free(x->sets);
    x->sets = NULL;
    x->n_sets = 0;
}

void kube_picture_read_finish(KubePictureRead *x) {
    for (uint32_t i = 0; i < x->n_slots; i++) free_slices(&x->tasks[i]);
    for (uint32_t i = 0; i < x->n_servers; i++) free_server(&x->servers[i]);
    for (uint32_t i = 0; i < x->n_tenants; i++) free(x->tenants[i]);
    drop_sets(x);
    free(x->tasks);
    free(x->servers);
    free(x->tenants);
    free(x->waiting);
    free(x->running);
    *x = (KubePictureRead){.tasks = NULL};
}

static Err bad(const char *what) { return err_set(ERR_INVALID, "record of a decision: %s", what); }

static Err count_at(const json_t *o, const char *key, uint32_t most, uint32_t *out) {
    const json_t *x = json_object_get(o, key);
    if (!json_is_integer(x) || json_integer_value(x) < 0 || json_integer_value(x) > most)
        return bad(key);
    *out = (uint32_t)json_integer_value(x);
    return ERR_OK;
}

static Err resize(void **at, uint32_t from, uint32_t to, size_t size) {
    void *more = realloc(*at, (to + (size_t)1) * size);
    if (more == NULL) return err_set(ERR_LIMIT, "no memory for a record of %u rows", to);
    if (to > from) memset((char *)more + from * size, 0, (to - from) * size);
    *at = more;
    return ERR_OK;
}

static Err index_at(const char *key, uint32_t n, uint32_t *out) {
    char         *end;
    unsigned long i = strtoul(key, &end, 10);
    if (end == key || *end != '\0' || i >= n) return bad("a row beyond its table");
    *out = (uint32_t)i;
    return ERR_OK;
}

static Err sizes(KubePictureRead *x, const json_t *o) {
    uint32_t slots, servers, tenants;
    TRY(count_at(o, "n_slots", SLOTS_MOST, &slots));
    TRY(count_at(o, "n_servers", SERVERS_MOST, &servers));
    TRY(count_at(o, "n_tenants", TENANTS_MOST, &tenants));
    for (uint32_t i = slots; i < x->n_slots; i++) free_slices(&x->tasks[i]);
    for (uint32_t i = servers; i < x->n_servers; i++) free_server(&x->servers[i]);
    for (uint32_t i = tenants; i < x->n_tenants; i++) free(x->tenants[i]);
    // From here on the smaller number of rows is owned, whatever fails.
    uint32_t from[3] = {x->n_slots, x->n_servers, x->n_tenants};
    if (slots < x->n_slots) x->n_slots = slots;
    if (servers < x->n_servers) x->n_servers = servers;
    if (tenants < x->n_tenants) x->n_tenants = tenants;
    TRY(resize((void **)&x->tasks, from[0] < slots ? from[0] : slots, slots, sizeof *x->tasks));
    x->n_slots = slots;
    TRY(resize((void **)&x->servers, from[1] < servers ? from[1] : servers, servers,
               sizeof *x->servers));
    x->n_servers = servers;
    TRY(resize((void **)&x->tenants, from[2] < tenants ? from[2] : tenants, tenants,
               sizeof *x->tenants));
    x->n_tenants = tenants;
    return ERR_OK;
}

static Err read_server(const json_t *row, KubeServer *to) {
    const char *name, *type, *rack;
    json_int_t  gpus, cores, memory;
    if (json_unpack((json_t *)(uintptr_t)row, "[s,s,s,I,I,I!]", &name, &type, &rack, &gpus, &cores,
                    &memory) != 0 ||
        gpus < 0 || gpus > CLUSTER_GPUS || cores < 0 || cores > UINT32_MAX || memory < 0 ||
        memory > UINT32_MAX)
        return bad("a server");
    free_server(to);
    *to = (KubeServer){.name = strdup(name),
                       .type = strdup(type),
                       .rack = strdup(rack),
                       .gpus = (uint32_t)gpus,
                       .cores_milli = (uint32_t)cores,
                       .memory_mib = (uint32_t)memory};
    if (to->name == NULL || to->type == NULL || to->rack == NULL)
        return err_set(ERR_LIMIT, "no memory for a server");
    return ERR_OK;
}

static Err read_servers(KubePictureRead *x, const json_t *o) {
    const char *key;
    json_t     *row;
    uint32_t    i;
    json_object_foreach(json_object_get(o, "servers"), key, row) {
        TRY(index_at(key, x->n_servers, &i));
        TRY(read_server(row, &x->servers[i]));
    }
    for (i = 0; i < x->n_servers; i++)
        if (x->servers[i].name == NULL) return bad("a server without a name");
    return ERR_OK;
}

static Err read_tenants(KubePictureRead *x, const json_t *o) {
    const char *key;
    json_t     *row;
    uint32_t    i;
    json_object_foreach(json_object_get(o, "tenants"), key, row) {
        TRY(index_at(key, x->n_tenants, &i));
        if (!json_is_string(row)) return bad("a tenant");
        free(x->tenants[i]);
        x->tenants[i] = strdup(json_string_value(row));
    }
    for (i = 0; i < x->n_tenants; i++)
        if (x->tenants[i] == NULL) return bad("a tenant without a name");
    return ERR_OK;
}

static Err read_set(KubePictureRead *x, const char *text) {
    uint32_t  words = (x->n_servers + 63) / 64;
    uint64_t *to = calloc(words + 1, sizeof *to);
    if (to == NULL) return err_set(ERR_LIMIT, "no memory for a set of servers");
    x->sets[x->n_sets++] = to;
    for (uint32_t w = 0; w < words; w++) {
        char *end;
        to[w] = strtoull(text, &end, 16);
        if (end == text || (*end != ',' && *end != '\0')) return bad("a set of servers");
        if (*end == '\0' && w + 1 < words) return bad("a set of servers");
        text = *end == ',' ? end + 1 : end;
    }
    return ERR_OK;
}

// A new generation begins without sets, and no task has one.
static Err read_sets(KubePictureRead *x, const json_t *o) {
    const json_t *g = json_object_get(o, "generation"), *all = json_object_get(o, "sets");
    const char   *key;
    json_t       *row;
    uint32_t      i;
    if (!json_is_integer(g)) return bad("generation");
    if ((uint64_t)json_integer_value(g) != x->generation) {
        drop_sets(x);
        for (i = 0; i < x->n_slots; i++) x->tasks[i].job.servers = NULL;
    }
    x->generation = (uint64_t)json_integer_value(g);
    if (json_object_size(all) > SETS_MOST - x->n_sets) return bad("too many sets of servers");
    TRY(resize((void **)&x->sets, x->n_sets, x->n_sets + (uint32_t)json_object_size(all),
               sizeof *x->sets));
    json_object_foreach((json_t *)(uintptr_t)all, key, row) {
        TRY(index_at(key, SETS_MOST, &i));
        if (i != x->n_sets || !json_is_string(row)) return bad("a set of servers");
        TRY(read_set(x, json_string_value(row)));
    }
    return ERR_OK;
}

static Err read_field(const KubeTaskField *f, const json_t *value, void *to) {
    int64_t  i = json_integer_value(value);
    uint32_t u32 = (uint32_t)i;
    int32_t  i32 = (int32_t)i;
    double   f64 = json_number_value(value);
    bool     b = i != 0;
    bool     wide = f->type == FIELD_U64 || f->type == FIELD_I64;
    if (f->type == FIELD_F64) {
        if (!json_is_number(value)) return bad(f->key);
        memcpy(to, &f64, sizeof f64);
        return ERR_OK;
    }
    if (!json_is_integer(value)) return bad(f->key);
    if (f->type == FIELD_U32 && (i < 0 || i > UINT32_MAX)) return bad(f->key);
    if (f->type == FIELD_I32 && (i < INT32_MIN || i > INT32_MAX)) return bad(f->key);
    const void *from = wide                   ? (const void *)&i
                       : f->type == FIELD_U32 ? (const void *)&u32
                       : f->type == FIELD_I32 ? (const void *)&i32
                                              : (const void *)&b;
    memcpy(to, from, f->size);
    return ERR_OK;
}

static Err read_slice(const KubePictureRead *x, const json_t *row, ClusterSlice *to) {
    json_int_t  server, gpus, milli, cores, memory;
    const char *mask;
    if (json_unpack((json_t *)(uintptr_t)row, "[I,s,I,I,I,I!]", &server, &mask, &gpus, &milli,
                    &cores, &memory) != 0 ||
        server < 0 || server >= x->n_servers || gpus < 0 || gpus > CLUSTER_GPUS || milli < 0 ||
        milli > CLUSTER_WHOLE_GPU || cores < 0 || cores > UINT32_MAX || memory < 0 ||
        memory > UINT32_MAX)
        return bad("a slice");
    *to = (ClusterSlice){.mask = strtoull(mask, NULL, 16),
                         .server = (uint32_t)server,
                         .gpus = (uint32_t)gpus,
                         .gpu_milli = (uint32_t)milli,
                         .cores_milli = (uint32_t)cores,
                         .memory_mib = (uint32_t)memory};
    uint32_t last = to->mask != 0 ? 64 - (uint32_t)__builtin_clzll(to->mask) : 0;
    return last <= x->servers[server].gpus ? ERR_OK : bad("a slice of GPUs that do not exist");
}

static Err read_slices(const KubePictureRead *x, const json_t *list, ClusterTask *t) {
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > x->n_servers) return bad("slices");
    ClusterSlice *to = calloc(n + 1, sizeof *to);
    if (to == NULL) return err_set(ERR_LIMIT, "no memory for slices");
    for (size_t i = 0; i < n; i++) {
        Err e = read_slice(x, json_array_get(list, i), &to[i]);
        if (e == ERR_OK) continue;
        free(to);
        return e;
    }
    free_slices(t);
    t->slices = to;
    t->n_slices = (uint32_t)n;
    return ERR_OK;
}

static Err read_task(const KubePictureRead *x, const json_t *row, ClusterTask *t) {
    const json_t *set = json_object_get(row, "set"), *slices = json_object_get(row, "slices");
    for (uint32_t i = 0; i < KUBE_TASK_FIELDS; i++) {
        const KubeTaskField *f = &kube_task_fields[i];
        const json_t        *value = json_object_get(row, f->key);
        if (value != NULL) TRY(read_field(f, value, (char *)t + f->offset));
    }
    if (set != NULL) {
        json_int_t i = json_integer_value(set);
        if (!json_is_integer(set) || i < -1 || i >= x->n_sets) return bad("a job's set of servers");
        t->job.servers = i < 0 ? NULL : x->sets[i];
    }
    if (slices != NULL) TRY(read_slices(x, slices, t));
    return ERR_OK;
}

static Err read_tasks(KubePictureRead *x, const json_t *o) {
    const char *key;
    json_t     *row;
    uint32_t    i;
    json_object_foreach(json_object_get(o, "tasks"), key, row) {
        TRY(index_at(key, x->n_slots, &i));
        TRY(read_task(x, row, &x->tasks[i]));
    }
    return ERR_OK;
}

static Err read_slots(const KubePictureRead *x, const json_t *o, const char *key, uint32_t **to,
                      uint32_t *n) {
    const json_t *list = json_object_get(o, key);
    uint32_t      count = (uint32_t)json_array_size(list);
    if (list == NULL && *to != NULL) return ERR_OK;
    if (!json_is_array(list) || count > x->n_slots) return bad(key);
    TRY(resize((void **)to, count, count, sizeof **to));
    *n = 0;
    for (uint32_t i = 0; i < count; i++) {
        const json_t *slot = json_array_get(list, i);
        json_int_t    k = json_integer_value(slot);
        if (!json_is_integer(slot) || k < 0 || k >= x->n_slots) return bad(key);
        (*to)[i] = (uint32_t)k;
    }
    *n = count;
    return ERR_OK;
}

// What policies rely on without a check: states, classes, tenants, slices on servers that exist.
static Err check_lists(const KubePictureRead *x, const uint32_t *list, uint32_t n,
                       ClusterState state) {
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] >= x->n_slots) return bad("a slot beyond the table");
        const ClusterTask *t = &x->tasks[list[i]];
        if (t->state != state || (i > 0 && t->entry <= x->tasks[list[i - 1]].entry))
            return bad("the state or the order of a task");
        if (t->job.tenant != CLUSTER_NONE && t->job.tenant >= x->n_tenants) return bad("a tenant");
        if (t->job.class != CLUSTER_NONE && t->job.class >= x->n_classes) return bad("a class");
        if (t->job.gpus > GPUS_MOST || t->job.gpu_milli > CLUSTER_WHOLE_GPU ||
            (t->job.gpus > 0 && t->job.gpu_milli == 0))
            return bad("a demand of GPUs");
        for (uint32_t k = 0; k < t->n_slices; k++)
            if (t->slices[k].server >= x->n_servers) return bad("a slice of no server");
    }
    return ERR_OK;
}

Err kube_picture_read(KubePictureRead *x, const json_t *line, KubePicture *out) {
    TRY(sizes(x, line));
    TRY(read_servers(x, line));
    TRY(read_tenants(x, line));
    TRY(read_sets(x, line));
    TRY(read_tasks(x, line));
    TRY(read_slots(x, line, "waiting", &x->waiting, &x->n_waiting));
    TRY(read_slots(x, line, "running", &x->running, &x->n_running));
    TRY(check_lists(x, x->waiting, x->n_waiting, CLUSTER_WAITING));
    TRY(check_lists(x, x->running, x->n_running, CLUSTER_RUNNING));
    *out = (KubePicture){
        .now = json_integer_value(json_object_get(line, "at")),
        .servers = x->servers,
        .tenants = (const char *const *)x->tenants,
        .tasks = x->tasks,
        .waiting = x->waiting,
        .running = x->running,
        .n_servers = x->n_servers,
        .n_tenants = x->n_tenants,
        .n_slots = x->n_slots,
        .n_waiting = x->n_waiting,
        .n_running = x->n_running,
        .reason = (uint32_t)json_integer_value(json_object_get(line, "reason")),
        .generation = x->generation,
        .fractions = json_integer_value(json_object_get(line, "fractions")) != 0,
        .no_gpus = json_integer_value(json_object_get(line, "no_gpus")) != 0,
    };
    return ERR_OK;
}
