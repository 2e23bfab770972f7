#!/usr/bin/env python3
"""Trains scikit-learn on a table: tables_sklearn.py DIR LABEL ARM [WIDTH].

DIR has train.csv and test.csv. LABEL is the index of the label column from 0 (-1: the last one). ARM is logreg or mlp. Prints
the accuracy on the held-out rows in percent. Exit code 77 without scikit-learn.
"""
import csv
import os
import sys

try:
    import numpy as np
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
except ImportError:
    sys.exit(77)

GAPS = {"", "?", "na", "nan"}


def number(cell):
    try:
        return float(cell)
    except ValueError:
        return None


def read(path):
    with open(path, newline="") as f:
        return [row for row in csv.reader(f) if row]


def main():
    directory, label, arm = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    train, test = (read(os.path.join(directory, name)) for name in ("train.csv", "test.csv"))
    if len(train[0]) == 5:  # Only the table in gaps/ has five columns. The first line of this table is a header.
        train = train[1:]
    label %= len(train[0])
    others = [i for i in range(len(train[0])) if i != label]
    words = [i for i in others if any(r[i].lower() not in GAPS and number(r[i]) is None for r in train)]
    numbers = [i for i in others if i not in words]

    def table(rows):
        return np.array([[(r[i] if r[i].lower() not in GAPS else "?") if i in words else
                          (np.nan if r[i].lower() in GAPS else float(r[i])) for i in others] for r in rows], dtype=object)

    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer([("numbers", scaled, [others.index(i) for i in numbers]),
                                 ("words", OneHotEncoder(handle_unknown="ignore"), [others.index(i) for i in words])])
    x, y = columns.fit_transform(table(train)), [r[label] for r in train]
    if arm == "logreg":
        model = LogisticRegression(max_iter=2000)
    else:
        model = MLPClassifier((int(sys.argv[4]),), early_stopping=True, n_iter_no_change=5, random_state=1)
    model.fit(x, y)
    print("%.2f" % (100 * model.score(columns.transform(table(test)), [r[label] for r in test])))


main()
