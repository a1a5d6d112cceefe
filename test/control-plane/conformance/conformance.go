// SPDX-License-Identifier: Apache-2.0

// Package conformance names the tests of Kubernetes, so that their modules are pinned; ../build.sh builds them.
package conformance

import _ "k8s.io/kubernetes/test/e2e"
