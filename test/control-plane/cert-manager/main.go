// SPDX-License-Identifier: Apache-2.0

// cert-manager's own controllers against the cluster of KUBECONFIG: as many as an authority of one's own, its
// certificates and their injection into webhook configurations need. Its own commands are modules inside its
// repository that no module proxy has; what they run is in the one that there is.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	certmanager "github.com/cert-manager/cert-manager/pkg/client/clientset/versioned/scheme"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run ends when the context does, or when something cannot be started.
func run(ctx context.Context) error {
	inject, err := injectors(ctx)
	if err != nil {
		return fmt.Errorf("cainjector: %w", err)
	}
	issue, err := issuers(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var issuing sync.WaitGroup
	issuing.Go(func() {
		issue(ctx)
	})
	err = inject.Start(ctx)
	stop()
	issuing.Wait()
	return err
}

// issuers gives what runs every controller that is imported above.
func issuers(ctx context.Context) (func(context.Context), error) {
	options := controller.ContextOptions{Kubeconfig: os.Getenv("KUBECONFIG")}
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return nil, err
	}
	shared, err := factory.Build()
	if err != nil {
		return nil, err
	}
	var all []controller.Interface
	for name, construct := range controller.Known() {
		one, err := construct(factory)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, one)
	}
	return func(ctx context.Context) {
		shared.SharedInformerFactory.Start(ctx.Done())
		shared.KubeSharedInformerFactory.Start(ctx.Done())
		var running sync.WaitGroup
		for _, one := range all {
			running.Go(func() {
				if err := one.Run(2, ctx); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			})
		}
		running.Wait()
	}, nil
}

// injectors write authorities into webhook configurations.
func injectors(ctx context.Context) (ctrl.Manager, error) {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config = util.RestConfigWithUserAgent(config, "cainjector")
	kinds := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, certmanager.AddToScheme} {
		if err := add(kinds); err != nil {
			return nil, err
		}
	}
	options := ctrl.Options{
		Scheme:  kinds,
		Metrics: server.Options{BindAddress: "0"},
		// a cache of Secrets would lag behind the news of them, and what is not found is not looked for again
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, err
	}
	return manager, cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
		},
	})
}
