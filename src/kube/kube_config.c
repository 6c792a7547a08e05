#include "kube/kube_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/yamldoc.h"

enum { CONFIG_BYTES = 4 << 20, CONFIG_DEPTH = 64, CONFIG_KEYS = 4096 };

typedef enum ConfigKind { CONFIG_SCALAR, CONFIG_LIST, CONFIG_MAP } ConfigKind;

typedef struct ConfigNode ConfigNode;
struct ConfigNode {  // of the file, as a tree
    ConfigKind  kind;
    const char *key;   // in a mapping
    const char *text;  // of a scalar; NULL: null
    size_t      line;
    uint32_t    n;  // children
    ConfigNode *first, *last, *next;
};

typedef struct ConfigReader {
    const char *name;
    const char *key;  // read, and its value not yet; NULL: none
    size_t      key_line;
    Arena      *tree, *out;
    ConfigNode *open[CONFIG_DEPTH];
    uint32_t    depth;
    ConfigNode  root;
} ConfigReader;

static Err add_node(ConfigReader *r, ConfigKind kind, size_t line, ConfigNode **out) {
    ConfigNode *in = r->depth > 0 ? r->open[r->depth - 1] : &r->root;
    for (ConfigNode *n = in->kind == CONFIG_MAP ? in->first : NULL; n != NULL; n = n->next)
        if (strcmp(n->key, r->key) == 0)
            return err_set(ERR_CONFIG, "%s:%zu: %s is already set in line %zu; keep one of them",
                           r->name, line, r->key, n->line);
    if (in->kind == CONFIG_MAP && ++in->n > CONFIG_KEYS)
        return err_set(ERR_LIMIT, "%s:%zu: more than %d keys", r->name, line, CONFIG_KEYS);
    ConfigNode *n = arena_try_new(r->tree, ConfigNode, 1);
    if (n == NULL) return err_set(ERR_LIMIT, "%s:%zu: the file is too large", r->name, line);
    *n = (ConfigNode){.kind = kind, .key = r->key, .line = r->key != NULL ? r->key_line : line};
    *(in->last != NULL ? &in->last->next : &in->first) = n;
    in->last = n;
    r->key = NULL;
    *out = n;
    return ERR_OK;
}

static bool wants_key(const ConfigReader *r) {
    return r->depth > 0 && r->open[r->depth - 1]->kind == CONFIG_MAP && r->key == NULL;
}

static Err add_scalar(ConfigReader *r, const yaml_event_t *e, size_t line) {
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    const char              *from = (const char *)e->data.scalar.value;
    ConfigNode              *n = NULL;
    size_t                   len = e->data.scalar.length;
    if (strlen(from) != len)
        return err_set(ERR_CONFIG, "%s:%zu: remove the zero byte in this text", r->name, line);
    char *text = arena_try_new(r->tree, char, len + 1);
    if (text == NULL) return err_set(ERR_LIMIT, "%s:%zu: the file is too large", r->name, line);
    memcpy(text, from, len);
    if (wants_key(r)) {
        r->key = text;
        r->key_line = line;
        return ERR_OK;
    }
    TRY(add_node(r, CONFIG_SCALAR, line, &n));
    n->text = text;
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        if (e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, nulls[i]) == 0)
            n->text = NULL;
    return ERR_OK;
}

static Err visit(void *ctx, const yaml_event_t *e, size_t line) {
    ConfigReader *r = ctx;
    ConfigNode   *n = NULL;
    if (e->type == YAML_MAPPING_END_EVENT || e->type == YAML_SEQUENCE_END_EVENT) {
        r->depth--;
        return ERR_OK;
    }
    if (e->type == YAML_SCALAR_EVENT) return add_scalar(r, e, line);
    if (wants_key(r)) return err_set(ERR_CONFIG, "%s:%zu: a key must be plain", r->name, line);
    if (r->depth == CONFIG_DEPTH)
        return err_set(ERR_LIMIT, "%s:%zu: nested deeper than %d", r->name, line, CONFIG_DEPTH);
    TRY(add_node(r, e->type == YAML_MAPPING_START_EVENT ? CONFIG_MAP : CONFIG_LIST, line, &n));
    r->open[r->depth++] = n;
    return ERR_OK;
}

static const ConfigNode *find(const ConfigNode *in, const char *key) {
    for (const ConfigNode *n = in != NULL && in->kind == CONFIG_MAP ? in->first : NULL; n != NULL;
         n = n->next)
        if (strcmp(n->key, key) == 0) return n;
    return NULL;
}

static Err copy(const ConfigReader *r, const char *text, size_t len, const char **out) {
    char *to = arena_try_new(r->out, char, len + 1);
    if (to == NULL) return err_set(ERR_LIMIT, "%s: no memory for its texts", r->name);
    memcpy(to, text, len);
    *out = to;
    return ERR_OK;
}

// A text member, NULL if it is missing, null or empty.
static Err read_text(const ConfigReader *r, const ConfigNode *in, const char *key,
                     const char **out) {
    const ConfigNode *n = find(in, key);
    *out = NULL;
    if (n == NULL || (n->kind == CONFIG_SCALAR && (n->text == NULL || *n->text == '\0')))
        return ERR_OK;
    if (n->kind != CONFIG_SCALAR)
        return err_set(ERR_CONFIG, "%s:%zu: %s must be a text", r->name, n->line, key);
    return copy(r, n->text, strlen(n->text), out);
}

// Relative to the file's own folder.
static Err read_path(const ConfigReader *r, const ConfigNode *in, const char *key,
                     const char **out) {
    char        folder[4096], path[8192];
    const char *text = NULL;
    TRY(read_text(r, in, key, &text));
    *out = text;
    if (text == NULL || *text == '/') return ERR_OK;
    TRY(file_folder(r->name, folder, sizeof folder));
    int n = snprintf(path, sizeof path, "%s/%s", folder, text);
    if (n < 0 || (size_t)n >= sizeof path)
        return err_set(ERR_LIMIT, "%s:%zu: this path is too long", r->name, find(in, key)->line);
    return copy(r, path, (size_t)n, out);
}

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char       *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

// Decodes in place; false: malformed. White space is skipped.
static bool decode_base64(char *text, size_t *len) {
    size_t   n = 0, digits = 0, pads = 0;
    uint32_t bits = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (strchr(" \t\r\n", *c) != NULL) continue;
        int d = base64_digit(*c);
        if (*c == '=' ? ++pads > 2 : d < 0 || pads > 0) return false;
        if (*c == '=') continue;
        bits = bits << 6 | (uint32_t)d;
        if (++digits % 4 != 1) text[n++] = (char)(bits >> (6 - 2 * ((digits - 1) % 4)) & 255);
    }
    *len = n;
    text[n] = '\0';
    return digits % 4 != 1 && (digits + pads) % 4 == 0;
}

static Err read_pem(const ConfigReader *r, const ConfigNode *in, const char *key,
                    const char **out) {
    const char *text = NULL;
    size_t      len = 0;
    TRY(read_text(r, in, key, &text));
    *out = NULL;
    if (text == NULL) return ERR_OK;
    char *to = arena_str(r->tree, text);
    if (!decode_base64(to, &len) || strlen(to) != len || len == 0)
        return err_set(ERR_CONFIG, "%s:%zu: %s is not a PEM file in base64; copy it again", r->name,
                       find(in, key)->line, key);
    return copy(r, to, len, out);
}

static Err read_bool(const ConfigReader *r, const ConfigNode *in, const char *key, bool *out) {
    const ConfigNode *n = find(in, key);
    *out = false;
    if (n == NULL || (n->kind == CONFIG_SCALAR && n->text == NULL)) return ERR_OK;
    if (n->kind == CONFIG_SCALAR && strcmp(n->text, "true") == 0) *out = true;
    if (*out || (n->kind == CONFIG_SCALAR && strcmp(n->text, "false") == 0)) return ERR_OK;
    return err_set(ERR_CONFIG, "%s:%zu: %s must be true or false", r->name, n->line, key);
}

// A field that is not known could change where or as what the program acts: it is refused too.
static Err check_fields(const ConfigReader *r, const ConfigNode *in, const char *what,
                        const char *const *known) {
    for (const ConfigNode *n = in->first; n != NULL; n = n->next) {
        bool empty = n->kind == CONFIG_SCALAR ? n->text == NULL || *n->text == '\0' : !n->first;
        bool fine = empty;
        for (const char *const *k = known; *k != NULL; k++) fine = fine || strcmp(n->key, *k) == 0;
        if (!fine)
            return err_set(ERR_UNSUPPORTED,
                           "%s:%zu: field %s of a %s is not supported; use a token, a tokenFile or "
                           "a client certificate and a direct connection",
                           r->name, n->line, n->key, what);
    }
    return ERR_OK;
}

// The entry of `list` by its name: its member `what`.
static Err find_named(const ConfigReader *r, const char *list, const char *what, const char *name,
                      const ConfigNode **out) {
    const ConfigNode *in = find(r->root.first, list);
    for (const ConfigNode *n = in != NULL && in->kind == CONFIG_LIST ? in->first : NULL; n != NULL;
         n = n->next) {
        const ConfigNode *key = find(n, "name"), *value = find(n, what);
        if (key == NULL || key->kind != CONFIG_SCALAR || key->text == NULL) continue;
        if (strcmp(key->text, name) != 0) continue;
        if (value == NULL || value->kind != CONFIG_MAP)
            return err_set(ERR_CONFIG, "%s:%zu: %s '%s' has no mapping '%s'", r->name, n->line,
                           what, name, what);
        *out = value;
        return ERR_OK;
    }
    return err_set(ERR_CONFIG, "%s: %s has no %s '%.200s'; add it or name another", r->name, list,
                   what, name);
}

// Scheme, host, port and path; nothing that would reach elsewhere, such as a user or a query.
static Err check_server(const char *where, size_t line, const char *url) {
    const char *rest = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : NULL;
    bool        fine = rest != NULL && *rest != '\0' && strchr("/:", *rest) == NULL;
    for (const char *c = url; *c != '\0' && fine; c++)
        fine = *c > ' ' && *c < 127 && strchr("@?#\\\"<>", *c) == NULL;
    if (fine && strlen(url) < 1024) return ERR_OK;
    return err_set(ERR_CONFIG,
                   "%s:%zu: server '%.200s' is not https://HOST[:PORT][/PATH] or the same with "
                   "http://",
                   where, line, url);
}

static const char *without_slash(Arena *a, const char *url) {
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/') len--;
    return arena_printf(a, "%.*s", (int)len, url);
}

static Err read_cluster(const ConfigReader *r, const ConfigNode *n, KubeConfig *out) {
    static const char *const known[] = {"server",
                                        "certificate-authority",
                                        "certificate-authority-data",
                                        "tls-server-name",
                                        "insecure-skip-tls-verify",
                                        "disable-compression",
                                        "extensions",
                                        NULL};
    TRY(check_fields(r, n, "cluster", known));
    TRY(read_text(r, n, "server", &out->server));
    if (out->server == NULL)
        return err_set(ERR_CONFIG, "%s:%zu: this cluster has no server", r->name, n->line);
    TRY(check_server(r->name, find(n, "server")->line, out->server));
    out->server = without_slash(r->out, out->server);
    TRY(read_pem(r, n, "certificate-authority-data", &out->ca_pem));
    TRY(read_path(r, n, "certificate-authority", &out->ca_file));
    if (out->ca_pem != NULL) out->ca_file = NULL;
    TRY(read_text(r, n, "tls-server-name", &out->server_name));
    TRY(read_bool(r, n, "insecure-skip-tls-verify", &out->insecure));
    if (out->insecure && (out->ca_pem != NULL || out->ca_file != NULL))
        return err_set(ERR_CONFIG,
                       "%s:%zu: insecure-skip-tls-verify contradicts the certificate authority; "
                       "remove one of them",
                       r->name, find(n, "insecure-skip-tls-verify")->line);
    return ERR_OK;
}

static Err read_user(const ConfigReader *r, const ConfigNode *n, KubeConfig *out) {
    static const char *const known[] = {
        "token",      "tokenFile",       "client-certificate", "client-certificate-data",
        "client-key", "client-key-data", "extensions",         NULL};
    TRY(check_fields(r, n, "user", known));
    TRY(read_text(r, n, "token", &out->token));
    TRY(read_path(r, n, "tokenFile", &out->token_file));
    TRY(read_pem(r, n, "client-certificate-data", &out->certificate_pem));
    TRY(read_path(r, n, "client-certificate", &out->certificate_file));
    TRY(read_pem(r, n, "client-key-data", &out->key_pem));
    TRY(read_path(r, n, "client-key", &out->key_file));
    if (out->certificate_pem != NULL) out->certificate_file = NULL;
    if (out->key_pem != NULL) out->key_file = NULL;
    bool certificate = out->certificate_pem != NULL || out->certificate_file != NULL;
    if (certificate == (out->key_pem != NULL || out->key_file != NULL)) return ERR_OK;
    return err_set(ERR_CONFIG, "%s:%zu: this user has a client %s without its %s", r->name, n->line,
                   certificate ? "certificate" : "key", certificate ? "client-key" : "certificate");
}

static Err read_context(const ConfigReader *r, const char *context, KubeConfig *out) {
    const ConfigNode *at = NULL, *cluster = NULL, *user = NULL;
    const char       *cluster_name = NULL, *user_name = NULL;
    if (r->root.first == NULL || r->root.first->kind != CONFIG_MAP)
        return err_set(ERR_CONFIG, "%s: this is not a kubeconfig: write \"key: value\" lines",
                       r->name);
    if (context == NULL) TRY(read_text(r, r->root.first, "current-context", &context));
    if (context == NULL)
        return err_set(ERR_CONFIG, "%s: it has no current-context; name a context", r->name);
    TRY(find_named(r, "contexts", "context", context, &at));
    TRY(read_text(r, at, "cluster", &cluster_name));
    TRY(read_text(r, at, "user", &user_name));
    TRY(read_text(r, at, "namespace", &out->namespace_name));
    if (cluster_name == NULL)
        return err_set(ERR_CONFIG, "%s:%zu: this context names no cluster", r->name, at->line);
    TRY(find_named(r, "clusters", "cluster", cluster_name, &cluster));
    TRY(read_cluster(r, cluster, out));
    if (user_name == NULL) return ERR_OK;
    TRY(find_named(r, "users", "user", user_name, &user));
    return read_user(r, user, out);
}

Err kube_config_parse(const char *name, const char *text, size_t len, const char *context, Arena *a,
                      KubeConfig *out) {
    Arena        tree = {0};
    KubeConfig   c = {0};
    ConfigReader r = {.name = name, .tree = &tree, .out = a};
    if (len > CONFIG_BYTES)
        return err_set(ERR_LIMIT, "%s: larger than %d MiB", name, CONFIG_BYTES >> 20);
    TRY(arena_init_growing(&tree, (size_t)1 << 20, (size_t)256 << 20));
    Err e = yamldoc_walk(name, text, len, visit, &r);
    if (e == ERR_OK) e = read_context(&r, context, &c);
    arena_finish(&tree);
    if (e == ERR_OK) *out = c;
    return e;
}

typedef struct ConfigFile {
    const char *context;
    Arena      *arena;
    KubeConfig *out;
} ConfigFile;

static Err parse_file(void *ctx, const char *path, char *text, size_t len) {
    ConfigFile *f = ctx;
    return kube_config_parse(path, text, len, f->context, f->arena, f->out);
}

Err kube_config_read(const char *path, const char *context, Arena *a, KubeConfig *out) {
    ConfigFile f = {context, a, out};
    return file_visit(path, CONFIG_BYTES, parse_file, &f);
}

Err kube_config_url(const char *url, Arena *a, KubeConfig *out) {
    TRY(check_server("--server", 1, url));
    *out = (KubeConfig){.server = without_slash(a, url)};
    return ERR_OK;
}

static Err read_namespace(void *ctx, const char *path, char *text, size_t len) {
    ConfigFile *f = ctx;
    len = strcspn(text, " \t\r\n");
    if (len == 0) return err_set(ERR_CONFIG, "%s: it is empty; it must name a namespace", path);
    f->out->namespace_name = arena_printf(f->arena, "%.*s", (int)len, text);
    return ERR_OK;
}

Err kube_config_in_cluster(const char *root, Arena *a, KubeConfig *out) {
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    KubeConfig  c = {0};
    ConfigFile  f = {.arena = a, .out = &c};
    if (host == NULL || port == NULL || *host == '\0' || *port == '\0')
        return err_set(
            ERR_CONFIG,
            "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no "
            "pod of a cluster; give a kubeconfig");
    if (root == NULL) root = "/var/run/secrets/kubernetes.io/serviceaccount";
    bool v6 = strchr(host, ':') != NULL;
    c.server = arena_printf(a, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port);
    TRY(check_server("KUBERNETES_SERVICE_HOST", 1, c.server));
    c.ca_file = arena_printf(a, "%s/ca.crt", root);
    c.token_file = arena_printf(a, "%s/token", root);
    TRY(file_visit(arena_printf(a, "%s/namespace", root), 4096, read_namespace, &f));
    *out = c;
    return ERR_OK;
}
