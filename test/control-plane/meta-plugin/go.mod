// SPDX-License-Identifier: Apache-2.0
// The stand-in for Multus, with libcni at one exact version; see ../build.sh.
module berth.dev/test/control-plane/meta-plugin

go 1.26.0

require github.com/containernetworking/cni v1.3.0

require (
	github.com/vishvananda/netns v0.0.4 // indirect
	golang.org/x/sys v0.23.0 // indirect
)
