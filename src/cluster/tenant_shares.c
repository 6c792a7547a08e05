#include "cluster/tenant_shares.h"

#include <string.h>

#include "base/decimal.h"
#include "base/option_list.h"

enum { GPUS_MOST = 1000000, WEIGHT_UNIT = 1000000, WEIGHT_MOST = 1000 };

static TenantShare *find(const TenantShares *l, const char *name) {
    for (uint32_t i = 0; i < l->n; i++)
        if (strcmp(l->at[i].name, name) == 0) return &l->at[i];
    return NULL;
}

// Splits "name=value" at the last '='; adds the tenant if it is new.
static Err entry(const char *option, const char *word, Arena *a, TenantShares *l,
                 TenantShare **share, const char **value) {
    const char *mark = strrchr(word, '=');
    if (mark == NULL || mark == word)
        return err_set(ERR_ARG, "--%s '%.60s': give TENANT=VALUE", option, word);
    const char *name = arena_printf(a, "%.*s", (int)(mark - word), word);
    *value = mark + 1;
    *share = find(l, name);
    if (*share != NULL) return ERR_OK;
    *share = &l->at[l->n++];
    **share = (TenantShare){.name = name};
    return ERR_OK;
}

static Err gpus_of(const char *name, const char *text, uint32_t *out) {
    int64_t      n = 0;
    DecimalError e = decimal_read(text, 1, GPUS_MOST, &n);
    if (e != DECIMAL_OK || n < 1 || strchr(text, '.') != NULL)
        return err_set(ERR_ARG, "--quota %.40s='%.40s': give GPUs as 16, 8..24, 8.. or ..24", name,
                       text);
    *out = (uint32_t)n;
    return ERR_OK;
}

static Err read_quota(TenantShare *s, const char *text, Arena *a) {
    const char *dots = strstr(text, "..");
    if (dots == NULL) {
        TRY(gpus_of(s->name, text, &s->limit));
        s->guaranteed = s->limit;
        return ERR_OK;
    }
    const char *least = arena_printf(a, "%.*s", (int)(dots - text), text), *most = dots + 2;
    s->guaranteed = s->limit = 0;
    if (*least != '\0' || *most == '\0') TRY(gpus_of(s->name, least, &s->guaranteed));
    if (*most != '\0') TRY(gpus_of(s->name, most, &s->limit));
    if (s->limit == 0 || s->guaranteed <= s->limit) return ERR_OK;
    return err_set(ERR_ARG, "--quota %.40s=%.40s: the guarantee is above the limit", s->name, text);
}

static Err read_weight(TenantShare *s, const char *text) {
    int64_t      x = 0;
    DecimalError e = decimal_read(text, WEIGHT_UNIT, (int64_t)WEIGHT_MOST * WEIGHT_UNIT, &x);
    if (e != DECIMAL_OK || x < 1)
        return err_set(ERR_ARG, "--weights %.40s='%.40s': give a number above 0, up to %d", s->name,
                       text, WEIGHT_MOST);
    s->weight = (double)x / WEIGHT_UNIT;
    return ERR_OK;
}

Err tenant_shares_read(const char *quota, const char *weights, Arena *a, TenantShares *out) {
    return tenant_shares_change(NULL, quota, weights, a, out);
}

Err tenant_shares_change(const TenantShares *shares, const char *quota, const char *weights,
                         Arena *a, TenantShares *out) {
    const char **words[2] = {NULL, NULL};
    uint32_t     n[2] = {0, 0};
    TenantShares l = {.n = shares != NULL ? shares->n : 0};
    if (quota != NULL) TRY(option_list_words("quota", quota, a, &words[0], &n[0]));
    if (weights != NULL) TRY(option_list_words("weights", weights, a, &words[1], &n[1]));
    l.at = arena_try_new(a, TenantShare, l.n + n[0] + n[1] + 1);
    if (l.at == NULL) return err_set(ERR_LIMIT, "no memory for %u tenants", n[0] + n[1]);
    for (uint32_t i = 0; i < l.n; i++) l.at[i] = shares->at[i];
    for (uint32_t k = 0; k < 2; k++)
        for (uint32_t i = 0; i < n[k]; i++) {
            TenantShare *s;
            const char  *value;
            TRY(entry(k == 0 ? "quota" : "weights", words[k][i], a, &l, &s, &value));
            TRY(k == 0 ? read_quota(s, value, a) : read_weight(s, value));
        }
    *out = l;
    return ERR_OK;
}

static ClusterTenant *named(ClusterTenant *tenants, uint32_t n, const char *name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(tenants[i].name, name) == 0) return &tenants[i];
    return NULL;
}

Err tenant_shares_apply(const TenantShares *shares, uint64_t gpus, ClusterTenant *tenants,
                        uint32_t n_tenants, bool *quotas) {
    uint64_t all = 0;
    *quotas = false;
    for (uint32_t i = 0; shares != NULL && i < shares->n; i++) {
        const TenantShare *s = &shares->at[i];
        ClusterTenant     *t = named(tenants, n_tenants, s->name);
        if (t == NULL)
            return err_set(ERR_ARG, "tenant %.60s: the trace has no jobs of it", s->name);
        if (s->weight > 0) t->weight = s->weight;
        t->guaranteed_milli = (uint64_t)s->guaranteed * CLUSTER_WHOLE_GPU;
        t->limit_milli = (uint64_t)s->limit * CLUSTER_WHOLE_GPU;
        all += s->guaranteed;
        *quotas = *quotas || s->guaranteed + s->limit > 0;
    }
    if (all <= gpus) return ERR_OK;
    return err_set(ERR_ARG, "--quota guarantees %llu GPUs; there are %llu", (unsigned long long)all,
                   (unsigned long long)gpus);
}

uint32_t tenant_shares_limit(const TenantShares *shares, const char *tenant) {
    const TenantShare *s = shares != NULL ? find(shares, tenant) : NULL;
    return s != NULL ? s->limit : 0;
}
