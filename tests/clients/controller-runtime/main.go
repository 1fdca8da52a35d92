// A controller-runtime manager as any operator has it: leader election, cached informers (WatchList), a finalizer, an
// owned object made with CreateOrUpdate, server-side apply, and Events. For every ConfigMap labelled `mirror=yes` it
// keeps a Secret of the same name. Run by e2e/test_clients.py; what it did shows in the objects.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "mirror.example/finalizer"

type mirror struct{ client.Client }

func (m *mirror) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	source := &corev1.ConfigMap{}
	if err := m.Get(ctx, request.NamespacedName, source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if source.Labels["mirror"] != "yes" {
		return ctrl.Result{}, nil
	}
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: source.Name, Namespace: source.Namespace}}
	if !source.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(m.Delete(ctx, copied)); err != nil {
			return ctrl.Result{}, err
		}
		if controllerutil.RemoveFinalizer(source, finalizer) {
			return ctrl.Result{}, m.Update(ctx, source)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(source, finalizer) {
		return ctrl.Result{}, m.Update(ctx, source)
	}
	_, err := controllerutil.CreateOrUpdate(ctx, m.Client, copied, func() error {
		copied.StringData = source.Data
		return controllerutil.SetControllerReference(source, copied, m.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	said := applycore.ConfigMap(source.Name+"-state", source.Namespace).WithData(map[string]string{"mirrored": source.ResourceVersion})
	return ctrl.Result{}, m.Apply(ctx, said, client.FieldOwner("mirror"), client.ForceOwnership)
}

func run() error {
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "mirror.example",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(&mirror{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
