// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/cilium/cilium/operator/pkg/ipam/allocator"
	"github.com/cilium/cilium/operator/pkg/ipam/allocator/clusterpool"
	"github.com/cilium/cilium/operator/pkg/ipam/allocator/multipool"
	"github.com/cilium/cilium/pkg/hive"
	ipamOption "github.com/cilium/cilium/pkg/ipam/option"
	ciliumv2 "github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2"
	"github.com/cilium/cilium/pkg/k8s/apis/cilium.io/v2alpha1"
	"github.com/cilium/cilium/pkg/k8s/client"
	"github.com/cilium/cilium/pkg/k8s/resource"
	"github.com/cilium/cilium/pkg/k8s/utils"
	"github.com/cilium/cilium/pkg/option"
	"github.com/cilium/cilium/pkg/time"
)

// operate is Cilium's operator as far as it gives nodes their addresses: the allocators of operator/pkg/ipam/allocator, which get the nodes as
// operator/pkg/ipam/nodewatcher.go gives them. That package itself cannot be built from the module proxy: it wants
// sigs.k8s.io/mcs-api/controllers. It says "ready", and runs until it is ended.
func operate(set clientset, f flags) error {
	option.Config.EnableIPv4, option.Config.EnableIPv6 = true, f.ipv6
	conf := &option.DaemonConfig{EnableIPv4: true, EnableIPv6: f.ipv6, IPAM: f.mode, IPAMDefaultIPPool: "default"}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	h := hive.New(
		cell.Provide(
			func() client.Clientset { return set },
			func() *option.DaemonConfig { return conf },
			func() multipool.Config { return multipool.DefaultConfig },
			func(l *slog.Logger) *multipool.PoolAllocator { return multipool.NewPoolAllocator(l, true, f.ipv6) },
			func(lc cell.Lifecycle, mp workqueue.MetricsProvider) resource.Resource[*ciliumv2.CiliumNode] {
				return resource.New[*ciliumv2.CiliumNode](
					lc, utils.ListerWatcherFromTyped[*ciliumv2.CiliumNodeList](set.CiliumV2().CiliumNodes()), mp)
			},
			func(lc cell.Lifecycle, mp workqueue.MetricsProvider) resource.Resource[*v2alpha1.CiliumPodIPPool] {
				return resource.New[*v2alpha1.CiliumPodIPPool](
					lc, utils.ListerWatcherFromTyped[*v2alpha1.CiliumPodIPPoolList](set.CiliumV2alpha1().CiliumPodIPPools()), mp)
			},
			watchNodes,
		),
		cell.Module("ipam", "Addresses of all nodes", cell.Invoke(multipool.StartAllocator), cell.Invoke(
			func(l *slog.Logger, jg job.Group, watch allocator.NodeWatcherJobFactory) error {
				return startClusterPool(l, jg, watch, set, f)
			})),
	)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := h.Start(logger, ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	<-ctx.Done()
	return h.Stop(logger, context.Background())
}

// startClusterPool is operator/pkg/ipam/clusterpool.go.
func startClusterPool(l *slog.Logger, jg job.Group, watch allocator.NodeWatcherJobFactory, set clientset, f flags) error {
	if f.mode != ipamOption.IPAMClusterPool {
		return nil
	}
	pool := &clusterpool.AllocatorOperator{
		ClusterPoolIPv4CIDR: strings.Split(f.cidrs, ","), ClusterPoolIPv4MaskSize: f.mask,
	}
	if err := pool.Init(context.Background(), l); err != nil {
		return err
	}
	jg.Add(watch(func(ctx context.Context) (allocator.NodeEventHandler, error) {
		return pool.Start(ctx, nodeUpdater{set}, silent{})
	}))
	return nil
}

// watchNodes is newNodeWatcherJobFactory of operator/pkg/ipam/nodewatcher.go, without pods, which only clouds look at.
func watchNodes(nodes resource.Resource[*ciliumv2.CiliumNode]) allocator.NodeWatcherJobFactory {
	return func(start allocator.NodeEventHandlerFactory) job.Job {
		return job.OneShot("cilium-nodes-watcher", func(ctx context.Context, _ cell.Health) error {
			handler, err := start(ctx)
			if err != nil {
				return err
			}
			for event := range nodes.Events(ctx) {
				switch event.Kind {
				case resource.Upsert:
					handler.Upsert(event.Object)
				case resource.Delete:
					handler.Delete(event.Object)
				case resource.Sync:
					handler.Resync(ctx, time.Time{})
				}
				event.Done(nil)
			}
			handler.Stop()
			return nil
		}, job.WithShutdown())
	}
}

// nodeUpdater is ciliumNodeUpdateImplementation of operator/pkg/ipam/nodewatcher.go.
type nodeUpdater struct{ set clientset }

func (u nodeUpdater) Create(node *ciliumv2.CiliumNode) (*ciliumv2.CiliumNode, error) {
	return u.set.CiliumV2().CiliumNodes().Create(context.Background(), node, metav1.CreateOptions{})
}

func (u nodeUpdater) Get(name string) (*ciliumv2.CiliumNode, error) {
	return u.set.CiliumV2().CiliumNodes().Get(context.Background(), name, metav1.GetOptions{})
}

func (u nodeUpdater) UpdateStatus(was, node *ciliumv2.CiliumNode) (*ciliumv2.CiliumNode, error) {
	if was != nil && was.Status.DeepEqual(&node.Status) {
		return nil, nil
	}
	return u.set.CiliumV2().CiliumNodes().UpdateStatus(context.Background(), node, metav1.UpdateOptions{})
}

func (u nodeUpdater) Update(was, node *ciliumv2.CiliumNode) (*ciliumv2.CiliumNode, error) {
	if was != nil && was.Spec.DeepEqual(&node.Spec) {
		return nil, nil
	}
	return u.set.CiliumV2().CiliumNodes().Update(context.Background(), node, metav1.UpdateOptions{})
}

// silent counts nothing.
type silent struct{}

func (silent) PostRun(time.Duration, time.Duration, int) {}
func (silent) QueueEvent(string)                         {}
