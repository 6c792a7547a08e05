// What each value allows and all together contradict.
#include <string.h>

#include "net/listener.h"
#include "serve/config_int.h"

static const char *origin_of(const Config *c, const char *key) {
    uint32_t       n = 0;
    const Setting *rows = config_serve_rows(&n);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0) return c->origins[i];
    return "";
}

static Err check_address(const Config *c, const char *key, const char *address) {
    const char *where = origin_of(c, key);
    bool        local = false;
    if (strcmp(address, "off") == 0) return ERR_OK;
    Err e = listener_is_local(address, &local);
    if (e != ERR_OK) return err_add(ERR_CONFIG, "%s: %s", where, key);
    if (local || c->serve.expose) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "%s: %s: other machines reach %s; use 127.0.0.1, or allow it with --expose "
                   "(expose: true in a file)",
                   where, key, address);
}

// Two parts cannot have one address; port 0 is another each time.
static Err check_apart(const Config *c, const char *const *keys, const char *const *at,
                       uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++) {
            size_t len = strlen(at[i]);
            bool   any = len > 2 && strcmp(at[i] + len - 2, ":0") == 0;
            if (!any && strcmp(at[i], "off") != 0 && strcmp(at[i], at[k]) == 0)
                return err_set(ERR_CONFIG, "%s: %s and %s are both %s; give one another port",
                               origin_of(c, keys[k]), keys[i], keys[k], at[i]);
        }
    return ERR_OK;
}

static Err check_limits(const Config *c) {
    const ServeSettings *s = &c->serve;
    if (s->held_mb < s->body_mb)
        return err_set(ERR_CONFIG,
                       "%s: held_mb: %d MiB for all bodies hold no body of body_mb = %d; raise "
                       "held_mb or lower body_mb",
                       origin_of(c, "held_mb"), s->held_mb, s->body_mb);
    return ERR_OK;
}

static const char *tenant_origin(const ConfigModel *m, const char *key) {
    uint32_t       n = 0;
    const Setting *rows = config_tenant_rows(&n);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(rows[i].key, key) == 0) return m->origins[i];
    return "";
}

static Err check_model(const Config *c, const ConfigModel *m) {
    const TenantSettings *t = &m->set;
    if (t->max_cores > 0 && t->min_cores > t->max_cores)
        return err_set(
            ERR_CONFIG,
            "%s: model %s: min_cores %d is more than max_cores %d; lower one or raise the "
            "other",
            tenant_origin(m, "min_cores"), m->name, t->min_cores, t->max_cores);
    if (c->serve.cores > 0 && t->min_cores > c->serve.cores)
        return err_set(ERR_CONFIG, "%s: model %s: min_cores %d is more than all %d cores",
                       tenant_origin(m, "min_cores"), m->name, t->min_cores, c->serve.cores);
    return ERR_OK;
}

void draft_sense(Draft *d) {
    Config                  *c = d->c;
    static const char *const keys[] = {"http", "grpc", "metrics", "admin"};
    bool                     own = strcmp(c->serve.admin, "http") != 0;  // else beside inference
    const char *const        at[] = {c->serve.http, c->serve.grpc, c->serve.metrics,
                              own ? c->serve.admin : "off"};
    for (uint32_t i = 0; i < 4; i++) (void)config_fine(c, check_address(c, keys[i], at[i]));
    (void)config_fine(c, check_apart(c, keys, at, 4));
    (void)config_fine(c, check_limits(c));
    for (uint32_t i = 0; i < c->n_models; i++) (void)config_fine(c, check_model(c, &c->models[i]));
}
