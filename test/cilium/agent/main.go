// SPDX-License-Identifier: Apache-2.0

// What Cilium's agent does with addresses, by the agent's own code (pkg/ipam), without a datapath: it takes part in the
// CiliumNode of NODE as an agent does. Lines on standard input are pods that come and go; each is answered by one line.
//
//	add OWNER [POOL]     -> "add OWNER ADDRESS [ADDRESS]" | "add OWNER ! WHY"; IPv4 before IPv6
//	del ADDRESS [POOL]   -> "del ADDRESS" | "del ADDRESS ! WHY"
//	restore ADDRESS OWNER [POOL] (before "begin") -> "restore ADDRESS" | "restore ADDRESS ! WHY"
//	begin                -> "begin": what ran before is restored
//
// Flags: -kubeconfig, -node, -mode (crd, cluster-pool, multi-pool), -ipv4 (true), -ipv6, -every (the least time between two writes of the
// CiliumNode; an agent's default is 15s), -prealloc (POOL=N, of multi-pool). It says "ready" once its allocator is there.
// With -operator it is Cilium's operator instead (operator.go), for all nodes: -cidrs and -mask are those of mode cluster-pool.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/cilium/statedb"
	k8serrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"

	agentK8s "github.com/cilium/cilium/daemon/k8s"
	"github.com/cilium/cilium/pkg/cidr"
	"github.com/cilium/cilium/pkg/hive"
	"github.com/cilium/cilium/pkg/ipam"
	ipamOption "github.com/cilium/cilium/pkg/ipam/option"
	"github.com/cilium/cilium/pkg/ipam/podippool"
	"github.com/cilium/cilium/pkg/k8s"
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	"github.com/cilium/cilium/pkg/k8s/client"
	"github.com/cilium/cilium/pkg/k8s/client/clientset/versioned"
	v2 "github.com/cilium/cilium/pkg/k8s/client/clientset/versioned/typed/cilium.io/v2"
	"github.com/cilium/cilium/pkg/k8s/client/clientset/versioned/typed/cilium.io/v2alpha1"
	"github.com/cilium/cilium/pkg/k8s/resource"
	"github.com/cilium/cilium/pkg/k8s/utils"
	"github.com/cilium/cilium/pkg/node"
	nodeTypes "github.com/cilium/cilium/pkg/node/types"
	"github.com/cilium/cilium/pkg/option"
)

// clientset is what the IPAM code uses of Cilium's large one.
type clientset struct {
	client.Clientset
	cilium versioned.Interface
}

func (c clientset) IsEnabled() bool                { return true }
func (c clientset) CiliumV2() v2.CiliumV2Interface { return c.cilium.CiliumV2() }
func (c clientset) CiliumV2alpha1() v2alpha1.CiliumV2alpha1Interface {
	return c.cilium.CiliumV2alpha1()
}

// nodeOwner makes the CiliumNode if it is not there, as the agent's node discovery does.
type nodeOwner struct {
	set  clientset
	name string
}

func (o nodeOwner) UpdateCiliumNodeResource() {
	nodes := o.set.CiliumV2().CiliumNodes()
	for {
		if _, err := nodes.Get(context.Background(), o.name, metav1.GetOptions{}); err == nil {
			return
		} else if k8serrors.IsNotFound(err) {
			made := &ciliumv2.CiliumNode{ObjectMeta: metav1.ObjectMeta{Name: o.name}}
			_, err = nodes.Create(context.Background(), made, metav1.CreateOptions{})
			if err == nil {
				return
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

type events struct{}

func (events) K8sEventReceived(string, string, string, bool, bool) {}
func (events) K8sEventProcessed(string, string, bool)              {}

type metadata struct{ pool string }

func (m metadata) GetIPPoolForPod(string, ipam.Family) (string, error) { return m.pool, nil }

// addressing is what the CiliumNode's podCIDRs say, which the agent reads once.
type addressing struct{ v4, v6 *cidr.CIDR }

func (a addressing) IPv4() node.AddressingFamily { return family{a.v4} }
func (a addressing) IPv6() node.AddressingFamily { return family{a.v6} }

type family struct{ own *cidr.CIDR }

func (f family) Router() net.IP             { return nil }
func (f family) PrimaryExternal() net.IP    { return nil }
func (f family) AllocationCIDR() *cidr.CIDR { return f.own }

type flags struct {
	kubeconfig, node, mode, prealloc, cidrs string
	ipv4, ipv6, operator                    bool
	mask                                    int
	every                                   time.Duration
}

func main() {
	var f flags
	flag.StringVar(&f.kubeconfig, "kubeconfig", "", "")
	flag.StringVar(&f.node, "node", "", "")
	flag.StringVar(&f.mode, "mode", ipamOption.IPAMCRD, "")
	flag.StringVar(&f.prealloc, "prealloc", "default=8", "")
	flag.BoolVar(&f.ipv4, "ipv4", true, "")
	flag.BoolVar(&f.ipv6, "ipv6", false, "")
	flag.BoolVar(&f.operator, "operator", false, "")
	flag.StringVar(&f.cidrs, "cidrs", "", "")
	flag.IntVar(&f.mask, "mask", 28, "")
	flag.DurationVar(&f.every, "every", 15*time.Second, "")
	flag.Parse()
	if err := run(f); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(f flags) error {
	nodeTypes.SetName(f.node)
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return err
	}
	cilium, err := versioned.NewForConfig(config)
	if err != nil {
		return err
	}
	set := clientset{cilium: cilium}
	if f.operator {
		return operate(set, f)
	}
	pool, amount, _ := strings.Cut(f.prealloc, "=")
	conf := &option.DaemonConfig{
		EnableIPv4:                 f.ipv4,
		EnableIPv6:                 f.ipv6,
		EnableHealthChecking:       true,
		IPAM:                       f.mode,
		IPAMCiliumNodeUpdateRate:   f.every,
		IPAMDefaultIPPool:          pool,
		IPAMMultiPoolPreAllocation: map[string]string{pool: amount},
	}
	option.Config.IPAM, option.Config.EnableIPv4, option.Config.EnableIPv6 = f.mode, f.ipv4, f.ipv6
	option.Config.IPAMDefaultIPPool = pool
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	params := ipam.NewIPAMParams{
		Logger:         logger,
		AgentConfig:    conf,
		NodeDiscovery:  nodeOwner{set, f.node},
		LocalNodeStore: node.NewTestLocalNodeStore(node.LocalNode{}),
		K8sEventReg:    events{},
		Clientset:      set,
		Metadata:       metadata{pool},
	}
	if f.mode == ipamOption.IPAMClusterPool {
		params.NodeAddressing = podCIDRsOf(set, f)
	}
	h := hive.New(cell.Module("agent-ipam", "Addresses of one node", cell.Invoke(
		func(lc cell.Lifecycle, jg job.Group, db *statedb.DB, mp workqueue.MetricsProvider) error {
			params.JobGroup, params.DB = jg, db
			if f.mode != ipamOption.IPAMMultiPool {
				return nil
			}
			nodes := resource.New[*ciliumv2.CiliumNode](lc, utils.ListerWatcherWithFields(
				utils.ListerWatcherFromTyped[*ciliumv2.CiliumNodeList](set.CiliumV2().CiliumNodes()),
				fields.ParseSelectorOrDie("metadata.name="+f.node)), mp)
			params.NodeResource = agentK8s.LocalCiliumNodeResource(resource.NewFilteringResource(
				nodes, func(n *ciliumv2.CiliumNode) bool { return n.GetName() == f.node }))
			var err error
			params.PodIPPools, err = podippool.NewTableAndReflector(jg, db, set)
			return err
		})))
	if err := h.Start(logger, context.Background()); err != nil {
		return err
	}
	if f.mode == ipamOption.IPAMMultiPool {
		params.NodeDiscovery.UpdateCiliumNodeResource()
	}
	manager := ipam.NewIPAM(params)
	manager.ConfigureAllocator()
	fmt.Println("ready")
	serve(manager, pool)
	return h.Stop(logger, context.Background())
}

// podCIDRsOf waits for them, as the agent does in node.WaitForNodeInformation.
func podCIDRsOf(set clientset, f flags) node.Addressing {
	nodeOwner{set, f.node}.UpdateCiliumNodeResource()
	for {
		object, err := set.CiliumV2().CiliumNodes().Get(context.Background(), f.node, metav1.GetOptions{})
		if err == nil {
			own := k8s.ParseCiliumNode(object)
			if (!f.ipv4 || own.IPv4AllocCIDR != nil) && (!f.ipv6 || own.IPv6AllocCIDR != nil) {
				return addressing{own.IPv4AllocCIDR, own.IPv6AllocCIDR}
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func serve(manager *ipam.IPAM, byDefault string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		answer, err := act(manager, words, byDefault)
		if err != nil {
			answer = fmt.Sprintf("%s ! %s", strings.Join(words[:min(2, len(words))], " "), strings.ReplaceAll(err.Error(), "\n", " "))
		}
		fmt.Println(answer)
	}
}

func act(manager *ipam.IPAM, words []string, byDefault string) (string, error) {
	poolAt := func(n int) ipam.Pool {
		if len(words) > n {
			return ipam.Pool(words[n])
		}
		return ipam.Pool(byDefault)
	}
	switch {
	case words[0] == "begin":
		manager.RestoreFinished()
		return "begin", nil
	case words[0] == "add" && len(words) > 1:
		v4, v6, err := manager.AllocateNext("", words[1], poolAt(2))
		if err != nil {
			return "", err
		}
		answer := "add " + words[1]
		for _, result := range []*ipam.AllocationResult{v4, v6} {
			if result != nil {
				answer += " " + result.IP.String()
			}
		}
		return answer, nil
	case words[0] == "del" && len(words) > 1:
		address, err := netip.ParseAddr(words[1])
		if err == nil {
			err = manager.ReleaseIP(address, poolAt(2))
		}
		return "del " + words[1], err
	case words[0] == "restore" && len(words) > 2:
		address, err := netip.ParseAddr(words[1])
		if err == nil {
			_, err = manager.AllocateIPWithoutSyncUpstream(address, words[2], poolAt(3))
		}
		return "restore " + words[1], err
	}
	return "", errors.New("is no command")
}
