// HostRule: which names (Host) and sites (Origin) a listener accepts requests for and from.
//
// A web page can make a browser send requests to addresses that only its user reaches: with a name
// of its own that resolves to them (DNS rebinding), or as a cross-site request.
#pragma once

#include "net/exchange.h"
#include "serve/config/config.h"

typedef struct HostRule {
    const char *hosts, *origins;  // settings
    char        own[64];          // host of the listener's address
    bool        unchecked;        // a Unix socket
    bool        any_host;
} HostRule;

// address: of the listener, as configured.
void host_rule_init(HostRule *r, const ServeSettings *set, const char *address);
// Why a request is refused; NULL: it is accepted. safe: it may come from any site.
const char *host_rule_refuses(const HostRule *r, const Exchange *x, bool safe);
