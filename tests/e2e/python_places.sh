#!/usr/bin/env bash
# tests/e2e/python_places.sh -- environments in which a hearsay.Peer runs: a trainer that owns the loop and calls back,
# and the cells of a notebook. The notebook is left out if Jupyter's kernel is missing.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

take_python
e2e_begin
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 PYDEVD_DISABLE_FILE_VALIDATION=1
export PYTHONPATH=$root/peer/api/python HEARSAY_LIBRARY=$library
export HOME=$work IPYTHONDIR=$work/ipython JUPYTER_RUNTIME_DIR=$work/jupyter # With these directories Jupyter ignores the caller's configuration.

while read -r name text; do
    bounded "$python" "$root/tests/e2e/python_places.py" "$name" >"$name.out" 2>"$name.err"
    code=$?
    if [ $code = 77 ]; then
        echo "# left out: $python has no ipykernel here (Debian: python3-ipykernel)"
        continue
    fi
    check "$name: $text" [ $code = 0 ]
done < <("$python" "$root/tests/e2e/python_places.py" --list)
e2e_end
