// KubeCredentials: the token and the certificates of a KubeConfig, read again as files change.
#pragma once

#include "base/clock.h"
#include "kube/kube_config.h"

typedef struct KubeCredentials {
    const KubeConfig *config;
    char             *token, *ca, *certificate, *key;  // NULL: none
    TimeNs            read_at;
} KubeCredentials;

// Reads all files. On an error what was read before stays.
MUST_USE Err kube_credentials_read(KubeCredentials *c, TimeNs now);
// The same if the last time is a minute ago.
MUST_USE Err kube_credentials_renew(KubeCredentials *c, TimeNs now);
bool         kube_credentials_from_files(const KubeCredentials *c);  // may a reading change them?
void         kube_credentials_finish(KubeCredentials *c);
