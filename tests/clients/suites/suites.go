// Package suites holds nothing: go.mod beside it pins the clients whose own test suites tests/e2e/test_suites.py
// builds and runs. The import keeps them there.
package suites

import _ "github.com/fluxcd/pkg/ssa"
