#include "serve/host_rule.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "net/address.h"
#include "net/listener.h"

static bool same(Str a, Str b) { return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0; }

// Without the port, brackets and the dot of the root.
static Str host_of(Str s) {
    if (s.len > 0 && s.at[0] == '[') {
        const char *end = memchr(s.at, ']', s.len);
        return end ? (Str){s.at + 1, (size_t)(end - s.at - 1)} : s;
    }
    const char *colon = s.len > 0 ? memchr(s.at, ':', s.len) : NULL;
    if (colon) s.len = (size_t)(colon - s.at);
    if (s.len > 1 && s.at[s.len - 1] == '.') s.len--;
    return s;
}

static bool is_loopback(Str host) {
    char    text[256];
    Address a = {.v4 = {.sin_family = AF_INET}};
    if (host.len == 0 || host.len >= sizeof text) return false;
    memcpy(text, host.at, host.len);
    text[host.len] = '\0';
    if (address_loopback(text)) return true;
    if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) return address_is_local(&a);
    a = (Address){.v6 = {.sin6_family = AF_INET6}};
    return inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1 && address_is_local(&a);
}

// Whether a list, separated by commas, has the word, or a *.
static bool listed(const char *list, Str word, Str (*part)(Str)) {
    for (const char *at = list; *at != '\0';) {
        size_t n = strcspn(at, ",");
        Str    one = {at, n};
        while (one.len > 0 && one.at[0] == ' ') one = (Str){one.at + 1, one.len - 1};
        while (one.len > 0 && one.at[one.len - 1] == ' ') one.len--;
        if (one.len > 0 && (same(one, (Str){"*", 1}) || same(part(one), word))) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static Str whole(Str s) { return s; }

void host_rule_init(HostRule *r, const ServeSettings *set, const char *address) {
    bool local = true;
    Str  own = host_of(text_of(address));
    *r = (HostRule){.hosts = set->hosts, .origins = set->origins};
    r->unchecked = strncmp(address, "unix:", 5) == 0;
    if (listener_is_local(address, &local) != ERR_OK) local = true;
    r->any_host = !local && set->hosts[0] == '\0';
    (void)snprintf(r->own, sizeof r->own, "%.*s", (int)own.len, own.at);
}

static bool accepts_host(const HostRule *r, Str value) {
    Str host = host_of(value);
    return r->any_host || value.len == 0 || is_loopback(host) || same(host, text_of(r->own)) ||
           listed(r->hosts, host, host_of);
}

// An origin is SCHEME://HOST[:PORT], or null; a port that is the scheme's own is left out, as in
// Host.
static bool same_origin(Str origin, Str host) {
    const char *mark = origin.len > 3 ? memmem(origin.at, origin.len, "://", 3) : NULL;
    if (mark == NULL) return false;
    mark += 3;
    return same((Str){mark, origin.len - (size_t)(mark - origin.at)}, host);
}

static bool accepts_origin(const HostRule *r, const Exchange *x) {
    Str  host = exchange_header(x, "host"), site = exchange_header(x, "sec-fetch-site");
    bool any = false;
    for (uint32_t i = 0; i < x->n_headers; i++) {
        const ExchangeHeader *h = &x->headers[i];
        if (!same(h->name, (Str){"origin", 6})) continue;
        any = true;
        if (!same_origin(h->value, host) && !listed(r->origins, h->value, whole)) return false;
    }
    return any || !same(site, (Str){"cross-site", 10}) || listed(r->origins, site, whole);
}

const char *host_rule_refuses(const HostRule *r, const Exchange *x, bool safe) {
    if (r->unchecked) return NULL;
    for (uint32_t i = 0; i < x->n_headers; i++)
        if (same(x->headers[i].name, (Str){"host", 4}) && !accepts_host(r, x->headers[i].value))
            return "the Host of this request is neither a loopback name nor this address; allow it "
                   "with the setting `hosts`";
    if (safe || accepts_origin(r, x)) return NULL;
    return "this request comes from another site (Origin); allow the site with the setting "
           "`origins`";
}
