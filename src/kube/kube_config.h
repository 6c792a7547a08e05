// KubeConfig: where the API server is and how to authenticate: from a kubeconfig file, from the
// files that a pod finds in a cluster, or from a URL.
#pragma once

#include "base/arena.h"
#include "base/err.h"

typedef struct KubeConfig {  // strings in the arena; NULL: not given
    const char *server;      // "https://HOST:PORT[/PATH]" without a slash at its end
    const char *ca_file;     // PEM; ca_pem instead if it was inline; neither: the system's
    const char *ca_pem, *certificate_pem, *key_pem;  // inline data, decoded
    const char *certificate_file, *key_file;         // of the client
    const char *token, *token_file;                  // bearer; the file is read again
    const char *server_name;                         // tls-server-name
    const char *namespace_name;                      // of the context
    bool        insecure;                            // insecure-skip-tls-verify
} KubeConfig;

// path: the file; context NULL: its current-context. What is not supported (exec plugins,
// auth-provider, proxy-url, impersonation) is refused by name with file and line.
MUST_USE Err kube_config_read(const char *path, const char *context, Arena *a, KubeConfig *out);
MUST_USE Err kube_config_parse(const char *name, const char *text, size_t len, const char *context,
                               Arena *a, KubeConfig *out);
// A server without authentication, or with what the caller adds to *out.
MUST_USE Err kube_config_url(const char *url, Arena *a, KubeConfig *out);
// From KUBERNETES_SERVICE_HOST, _PORT and the service account's files below `root`, by default
// /var/run/secrets/kubernetes.io/serviceaccount.
MUST_USE Err kube_config_in_cluster(const char *root, Arena *a, KubeConfig *out);
