// Puppet: a server on the test's own loop that says what it is told, sense or nonsense.
#pragma once

#include <stddef.h>

#include "net/loop.h"

enum { PUPPET_LINES = 64 };

typedef struct Puppet Puppet;

typedef struct PuppetLine {
    Puppet *puppet;
    LoopFd  fd;
    void   *session;  // of nghttp2
} PuppetLine;

typedef enum PuppetMood {
    PUPPET_TALKS,   // answers each request
    PUPPET_HANGS,   // reads and says nothing
    PUPPET_LEAVES,  // closes when the first byte comes
    PUPPET_HTTP2,   // answers each stream as status and message say
} PuppetMood;

struct Puppet {
    Loop       *loop;
    LoopFd      listener;
    char        port[8];
    PuppetLine  lines[PUPPET_LINES];
    PuppetMood  mood;
    const char *says;
    size_t      len;         // of says; 0: its length as text
    bool        then_close;  // after each answer
    bool        greets;      // says it at once, before anybody asks
    uint32_t    accepted, requests;
    bool        resets;  // HTTP/2: streams, instead of answers
};

void puppet_open(Puppet *p, Loop *l);  // zeroed but for how it shall behave
void puppet_close(Puppet *p);
void puppet_hang_up(Puppet *p);  // all connections
