# tools/deps installs missing packages, as root or through sudo, and does nothing if none is missing: with stand-ins for
# dpkg-query, apt-get, id and sudo that log their calls.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
for tool in sh sed awk grep dirname env; do
    ln -s "$(command -v $tool)" "$dir/$tool" || exit 1
done
stand_in() { printf '#!%s/sh\n%s\n' "$dir" "$2" > "$dir/$1" && chmod +x "$dir/$1"; }
stand_in dpkg-query 'echo "here installed"; echo "removed config-files"; exit 1'
stand_in apt-get 'echo "apt-get $*" >> "'"$dir"'/calls"'
bad=0

deps() { # PACKAGES: what tools/deps does about them
    printf '# a list\n' > "$dir/list"
    for package; do printf '%s   a reason\n' "$package" >> "$dir/list"; done
    rm -f "$dir/calls"
    PATH=$dir "$SRC/tools/deps" "$dir/list" > "$dir/said" 2>&1
    status=$?
}
expect() { # STATUS WORDS: WORDS are in what was said or called
    [ "$status" = "$1" ] || { echo "status $status, not $1"; bad=1; }
    cat "$dir/said" "$dir/calls" 2>/dev/null | grep -qF -- "$2" || { echo "no word of: $2"; cat "$dir/said"; bad=1; }
}

stand_in id 'echo 0'
deps here
[ "$status" = 0 ] && [ ! -s "$dir/said" ] && [ ! -f "$dir/calls" ] || { echo "busy although nothing is missing"; bad=1; }
deps here absent removed
expect 0 'install -y --no-install-recommends absent removed'

deps here 'absent|sed' 'removed|sh'
[ "$status" = 0 ] && [ ! -s "$dir/said" ] && [ ! -f "$dir/calls" ] || { echo "busy although the commands are there"; bad=1; }
deps here 'absent|no-such-command' 'removed|sh'
expect 0 'install -y --no-install-recommends absent'
grep -q removed "$dir/calls" && { echo "installs what a command stands for"; bad=1; }

stand_in id 'echo 1000'
deps here absent
expect 1 'Ask an administrator'
[ ! -f "$dir/calls" ] || { echo "apt-get was called without rights"; bad=1; }
stand_in sudo 'echo "sudo $*" >> "'"$dir"'/calls"; "$@"'
deps here absent
expect 0 'sudo env'

stand_in apt-get 'exit 100'
deps absent
expect 1 'Installing absent failed'
exit $bad
