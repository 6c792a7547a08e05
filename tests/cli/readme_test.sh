# The README's commands print what the README shows: every command is run, every line shown must appear
# (a line that ends in ... is a prefix). The server gets other ports, so that it does not collide with another one.
dir=$(mktemp -d) || exit 1
server=
trap 'stop; rm -rf "$dir"' EXIT
cd "$dir" && mkdir build && ln -s "$COTENANT" build/cotenant || exit 1
bad=0 commands=0
port=$((20000 + $$ % 20000 / 3 * 3))
export COTENANT_HTTP=127.0.0.1:$port COTENANT_GRPC=127.0.0.1:$((port + 1)) COTENANT_METRICS=127.0.0.1:$((port + 2))

stop() { # the second signal skips draining
    [ -z "$server" ] || { kill "$server"; sleep 0.3; kill "$server"; } 2>/dev/null
    server=
}

moved() { # replaces the README's ports
    sed "s/:8000/:$port/g; s/:8001/:$((port + 1))/g; s/:8002/:$((port + 2))/g
         s|build/cotenant why|& --url http://127.0.0.1:$((port + 2))|"
}

start() { # starts a server and waits until it prints its addresses
    sh -c "exec ${1%&}" > said < /dev/null &
    server=$!
    for _ in $(seq 300); do [ -s said ] && return; sleep 0.1; done
    cat serve.log
}

moved < "$SRC/README.md" | awk '/^```/ { inside = !inside } inside && !/^```/' > session
while IFS= read -r line; do
    case $line in
    '$ '*'&')
        commands=$((commands + 1))
        start "${line#??}"
        ;;
    '$ kill %1') stop ;;
    '$ '*)
        commands=$((commands + 1))
        sh -c "${line#??}" > said 2>&1 < /dev/null || case $line in
        *curl* | *bench* | *why*) echo "failed: $line"; cat said; bad=1 ;;
        esac
        ;;
    '' | ... | 'make '*) ;;
    ?*...) awk -v start="${line%...}" 'index($0, start) == 1 { ok = 1 } END { exit !ok }' said ||
        { echo "not printed: $line"; bad=1; } ;;
    *) grep -qxF -- "$line" said || { echo "not printed: $line"; bad=1; } ;;
    esac
done < session
[ "$commands" -ge 12 ] || { echo "only $commands commands found"; bad=1; }
[ "$(head -c 1 answer)" = "{" ] || { echo "no answer came as bytes"; bad=1; }
exit $bad
