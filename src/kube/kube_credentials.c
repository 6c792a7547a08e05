#include "kube/kube_credentials.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"

enum { TOKEN_BYTES = 64 << 10, PEM_BYTES = 4 << 20 };

static const TimeNs RENEW_NS = INT64_C(60) * 1000000000;

static Err keep(void *ctx, const char *path, char *text, size_t len) {
    char **out = ctx;
    if (len == 0 || strlen(text) != len)
        return err_set(ERR_CONFIG, "%s: it is empty or not a text", path);
    *out = strdup(text);
    return *out != NULL ? ERR_OK : err_set(ERR_LIMIT, "%s: no memory for it", path);
}

// From the text if there is one, else from the file, else NULL.
static Err load(const char *text, const char *path, size_t most, char **out) {
    *out = NULL;
    if (text == NULL && path == NULL) return ERR_OK;
    if (text == NULL) return file_visit(path, most, keep, out);
    *out = strdup(text);
    return *out != NULL ? ERR_OK : err_set(ERR_LIMIT, "no memory for credentials");
}

// It becomes part of a header: one word.
static Err trim_token(const KubeConfig *c, char *token) {
    if (token == NULL) return ERR_OK;
    size_t from = strspn(token, " \t\r\n"), len = strlen(token);
    while (len > from && strchr(" \t\r\n", token[len - 1]) != NULL) len--;
    memmove(token, token + from, len - from);
    token[len - from] = '\0';
    bool fine = *token != '\0';
    for (const char *t = token; *t != '\0'; t++) fine = fine && *t > ' ' && *t < 127;
    if (fine) return ERR_OK;
    return err_set(ERR_CONFIG, "%s: the token is not one word of ASCII",
                   c->token_file != NULL ? c->token_file : "kubeconfig");
}

static Err read_all(KubeCredentials *c) {
    const KubeConfig *f = c->config;
    TRY(load(f->token_file != NULL ? NULL : f->token, f->token_file, TOKEN_BYTES, &c->token));
    TRY(trim_token(f, c->token));
    TRY(load(f->ca_pem, f->ca_file, PEM_BYTES, &c->ca));
    TRY(load(f->certificate_pem, f->certificate_file, PEM_BYTES, &c->certificate));
    return load(f->key_pem, f->key_file, PEM_BYTES, &c->key);
}

Err kube_credentials_read(KubeCredentials *c, TimeNs now) {
    KubeCredentials fresh = {.config = c->config, .read_at = now};
    Err             e = read_all(&fresh);
    if (e != ERR_OK) {
        kube_credentials_finish(&fresh);
        return e;
    }
    kube_credentials_finish(c);
    *c = fresh;
    return ERR_OK;
}

bool kube_credentials_from_files(const KubeCredentials *c) {
    const KubeConfig *f = c->config;
    return f->token_file != NULL || f->certificate_file != NULL || f->key_file != NULL ||
           f->ca_file != NULL;
}

Err kube_credentials_renew(KubeCredentials *c, TimeNs now) {
    if (!kube_credentials_from_files(c) || now - c->read_at < RENEW_NS) return ERR_OK;
    return kube_credentials_read(c, now);
}

void kube_credentials_finish(KubeCredentials *c) {
    if (c->token != NULL) explicit_bzero(c->token, strlen(c->token));
    if (c->key != NULL) explicit_bzero(c->key, strlen(c->key));
    free(c->token);
    free(c->ca);
    free(c->certificate);
    free(c->key);
    *c = (KubeCredentials){.config = c->config};
}
