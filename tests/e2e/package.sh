#!/usr/bin/env bash
# tests/e2e/package.sh -- builds the Debian packages, installs them in a bare Debian, uses them there, and removes them. Checks
# that the program trains, the systemd unit is valid, and C and Python programs find the library.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/lib_docker.sh
. "$root/tests/lib_docker.sh"
e2e_begin

[ "$(id -u)" = 0 ] || skip "only root can install a package"
for need in cpack dpkg-shlibdeps unshare; do
    command -v "$need" >/dev/null || skip "there is no $need here"
done
config=$(dirname "$HEARSAY")/CPackConfig.cmake
[ -e "$config" ] || skip "$HEARSAY is not in a build directory"
! "$HEARSAY" --version | grep -qE '^sanitizers +[^n ]' || skip "a build with sanitizers is not for others"
tar=$(docker_base_tar) || skip "there is no bare Debian here, and debootstrap makes none"

check "cpack makes a package" eval 'bounded cpack --config "$config" -B "$work/deb" >cpack.out 2>cpack.err'
deb=$(ls deb/hearsay_*.deb)
files=$(dpkg-deb -c "$deb" | awk '{ print $NF }')
for file in ./usr/bin/hearsay ./usr/share/man/man1/hearsay.1.gz ./usr/share/bash-completion/completions/hearsay \
    ./usr/lib/systemd/system/hearsay@.service ./usr/share/doc/hearsay/copyright ./usr/share/doc/hearsay/README.md \
    ./usr/share/doc/hearsay/examples/systemd/peer.env ./usr/share/doc/hearsay/examples/slurm/hearsay.sbatch \
    ./usr/share/doc/hearsay/examples/kubernetes/statefulset.yaml; do
    check "  with $file" grep -qxF "$file" <<<"$files"
done
check "  all files belong to root" [ "$(dpkg-deb -c "$deb" | awk '{ print $2 }' | sort -u)" = root/root ]
if command -v lintian >/dev/null; then
    # Known complaints of lintian that are suppressed: the maintainer has no e-mail address; the package name has no library
    # version while the version is 0; ldconfig is called twice; paths have no architecture triplet.
    lintian --allow-root --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog,maintscript-calls-ldconfig \
        --suppress-tags package-name-doesnt-match-sonames,pkg-config-unavailable-for-cross-compilation deb/*.deb >lintian.out 2>&1
    check "  lintian finds nothing: $(grep -m 1 ^[EW]: lintian.out)" [ -z "$(grep ^[EW]: lintian.out)" ]
fi

bare_tree "$tar" && cp "$deb" tree/hearsay.deb
check "there is no hearsay in a bare Debian" eval '! inside which hearsay >/dev/null'
if ! inside apt-get -qq update >update.out 2>&1; then
    skip "no package archive answers: $(tail -n 1 update.out)"
fi
check "apt installs it, and what it needs" eval \
    'inside apt-get -qq -y --no-install-recommends install /hearsay.deb >install.out 2>&1'
bare_keep
check "it is the version that was built" [ "$(inside hearsay --version | head -n 1)" = "$("$HEARSAY" --version | head -n 1)" ]
check "no library is missing, and none is of the build's" eval \
    '! inside ldd /usr/bin/hearsay | grep -qE "not found|/build/"'
check "hearsay local trains there" eval \
    'inside hearsay local --peers 4 --topology ring --model logreg --data glyphs --rounds 20 --out /run/out --seed 1 >local.out 2>local.err'
check "  with consensus: $(tail -n 1 local.out)" grep -q '^consensus of 4 of 4 peers' local.out
check "  and four models" [ "$(find tree/run/out -name model.safetensors | wc -l)" = 4 ]
check "bash completes it there" [ "$(inside bash -c '. /usr/share/bash-completion/completions/hearsay
    COMP_LINE="hearsay loc" COMP_POINT=11 COMP_WORDS=(hearsay loc) COMP_CWORD=1; _hearsay 2>/dev/null; echo "${COMPREPLY[*]}"')" = local ]

# ---- The package of the library. ----

cp deb/libhearsay_*.deb tree/libhearsay.deb && cp deb/libhearsay-dev_*.deb tree/libhearsay-dev.deb
check "apt installs the library, and what programs are built with" eval \
    'inside apt-get -qq -y --no-install-recommends install /libhearsay.deb /libhearsay-dev.deb >library.out 2>&1'
check "  the loader finds it" eval 'inside ldconfig -p | grep -q "libhearsay.so.0 "'
libdir=$(cd tree/usr && dirname "$(find lib -name libhearsay.so.0)") # The library is in lib or lib/TRIPLET, such as lib/x86_64-linux-gnu.
inside ldd "/usr/$libdir/libhearsay.so.0" >ldd.out
check "  all its libraries are found, none in the build directory" eval 'grep -q libsodium ldd.out && ! grep -qE "not found|/build/" ldd.out'
for file in include/hearsay.h "$libdir/libhearsay.so" "$libdir/libhearsay.a" "$libdir/pkgconfig/hearsay.pc" \
    share/doc/libhearsay-dev/examples/least_squares.c; do
    check "  with /usr/$file" [ -e "tree/usr/$file" ]
done
for page in hearsay_round libhearsay; do
    check "  with the manual page $page(3)" eval 'gzip -dc tree/usr/share/man/man3/$page.3.gz | grep -q "^.TH $page 3 "'
done
if command -v doxygen >/dev/null; then
    check "  with the reference as HTML" [ -s tree/usr/share/doc/libhearsay-dev/html/hearsay_8h.html ]
fi
check "  and pkg-config says where" grep -qx 'prefix=/usr' "tree/usr/$libdir/pkgconfig/hearsay.pc"
if command -v pkg-config >/dev/null; then
    check "  and needs no other package's word for that" eval \
        'PKG_CONFIG_LIBDIR="tree/usr/$libdir/pkgconfig" pkg-config --cflags --libs hearsay >pkg.out 2>pkg.err && grep -q -e -lhearsay pkg.out'
fi

# ---- The Python package. ----

python_deb=$(ls deb/python3-hearsay_*_all.deb)
cp "$python_deb" tree/python3-hearsay.deb
version=$(dpkg-deb -f "$python_deb" Version)
check "python3-hearsay wants the library of its version" grep -qF "libhearsay (= $version)" <(dpkg-deb -f "$python_deb" Depends)
check "  recommends numpy only, and suggests PyTorch" \
    [ "$(dpkg-deb -f "$python_deb" Recommends), $(dpkg-deb -f "$python_deb" Suggests)" = "python3-numpy, python3-torch" ]
check "dpkg refuses it without python3" eval '! inside dpkg -i /python3-hearsay.deb >dpkg.out 2>&1'
check "apt installs what it needs" eval 'inside apt-get -qq -y --no-install-recommends --fix-broken install >fix.out 2>&1'
bare_keep
check "dpkg installs it" eval 'inside dpkg -i /python3-hearsay.deb >dpkg.out 2>&1'
inside python3 -c 'import hearsay; print(hearsay.__version__, hearsay.library, len(hearsay.codecs()))' >import.out 2>import.err
check "  import hearsay finds the library of the system: $(cat import.out import.err)" \
    grep -qE "^$version libhearsay\.so\.0 [0-9]+\$" import.out
check "  its bytecode is made" [ -n "$(find tree/usr/lib/python3/dist-packages/hearsay -name '*.pyc')" ]
check "  a codec works without numpy" inside python3 -c 'import hearsay, array
c, x = hearsay.Codec("topk:0.5", 4), array.array("f", [1, 2, 3, 4])
assert list(c.decode(c.encode(x))) == [0, 0, 3, 4]'

# ---- The package of hearsay-lab. ----

lab_deb=$(ls deb/hearsay-lab_*_all.deb)
cp "$lab_deb" tree/hearsay-lab.deb
check "python3-hearsay has no file of hearsay-lab" eval '! dpkg-deb -c "$python_deb" | grep -q /lab'
check "apt installs hearsay-lab with matplotlib" eval \
    'inside apt-get -qq -y --no-install-recommends install /hearsay-lab.deb >lab.out 2>&1'
bare_keep
check "  its bytecode is made" [ -n "$(find tree/usr/lib/python3/dist-packages/hearsay/lab -name '*.pyc')" ]
check "  hearsay-lab draws a finished run" inside hearsay-lab report /run/out --out /run/report.html
check "  as a page with curves" grep -q '<svg' tree/run/report.html
printf 'command = "sim"\nmodel = "logreg"\npeers = 2\nrounds = 5\n[exact]\ncompress = "none"\n[few]\ncompress = "topk:0.1"\n' >tree/run/arms.toml
check "  and compares two codecs with the installed program" inside hearsay-lab compare /run/arms.toml --out /run/compared
sed 's/^/# /' tree/run/compared/compare.csv

# ---- The systemd unit. ----

unit=hearsay@a.service
if command -v systemd-analyze >/dev/null; then
    cp -rn /usr/lib/systemd/system/. tree/usr/lib/systemd/system/ # The standard units of systemd, which a bare Debian lacks.
    check "systemd finds no fault with the unit" eval \
        'systemd-analyze --root="$work/tree" --man=no verify "$unit" >verify.out 2>&1 && [ ! -s verify.out ]'
    sed 's/^/# /' verify.out
    systemd-analyze --root="$work/tree" --offline=true --no-pager security "$unit" >security.out 2>&1
    exposure=$(sed -nE 's/.*exposure level for .*: ([0-9.]+) .*/\1/p' security.out)
    check "  and little that it is exposed to: ${exposure:-unknown} of 10" within "${exposure:-none}" 0 2
fi
# Each variable in the unit's environment file must be an option of hearsay peer.
for variable in $(sed -nE 's/^#?(HEARSAY_[A-Z_]+)=.*/\1/p' tree/usr/share/doc/hearsay/examples/systemd/peer.env) HEARSAY_KEY HEARSAY_OUT; do
    check "  $variable is an option of hearsay peer" grep -qE "[(; ]$variable\)" <("$HEARSAY" peer --help all)
done

check "apt removes it" eval 'inside apt-get -qq -y purge hearsay hearsay-lab libhearsay libhearsay-dev python3-hearsay >purge.out 2>&1'
check "  and no file remains" [ -z "$(find tree/usr tree/etc tree/var/lib/dpkg/info -name '*hearsay*')" ]
e2e_end
