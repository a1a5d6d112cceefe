// SPDX-License-Identifier: Apache-2.0

// A stand-in for Multus, whose module cannot be had: a CNI plugin that gives a pod the cluster's network, and then every network that
// its annotation k8s.v1.cni.cncf.io/networks names, each by libcni as Multus' documents say (docs/how-to-use.md): one ADD per element, named
// net1, net2 or as the element says, with its ips and mac as runtimeConfig where the configuration declares them, and its cni-args as
// args.cni. All of them or none. Configurations are files in place of NetworkAttachmentDefinitions, the pod's annotations
// are those that the runtime sends in place of the API server's, and nothing is written to the pod.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
)

const (
	networks    = "k8s.v1.cni.cncf.io/networks"
	annotations = "io.kubernetes.cri.pod-annotations"
)

type config struct {
	types.NetConf
	// That of the plugin for the cluster's network.
	Delegate json.RawMessage `json:"delegate"`
	// NAMESPACE_NAME.json, or NAME.json, each a configuration or a list.
	Folder        string                     `json:"folder"`
	CacheDir      string                     `json:"cacheDir"`
	RuntimeConfig map[string]json.RawMessage `json:"runtimeConfig"`
}

// One entry of the annotation.
type element struct {
	Name      string                 `json:"name"`
	Namespace string                 `json:"namespace"`
	Interface string                 `json:"interface"`
	IPs       []string               `json:"ips"`
	Mac       string                 `json:"mac"`
	Args      map[string]interface{} `json:"cni-args"`
}

type attachment struct {
	list *libcni.NetworkConfigList
	rt   *libcni.RuntimeConf
}

func main() {
	funcs := skel.CNIFuncs{Add: add, Del: del, Check: check}
	skel.PluginMainFuncs(funcs, version.All, "meta-plugin: a stand-in for Multus in tests")
}

func add(args *skel.CmdArgs) error {
	cni, all, err := read(args)
	if err != nil {
		return err
	}
	var first types.Result
	for i, one := range all {
		result, err := cni.AddNetworkList(context.Background(), one.list, one.rt)
		if err != nil {
			remove(cni, all[:i+1])
			return fmt.Errorf("%s of network %s: %w", one.rt.IfName, one.list.Name, err)
		}
		if i == 0 {
			first = result
		}
	}
	return types.PrintResult(first, all[0].list.CNIVersion)
}

func del(args *skel.CmdArgs) error {
	cni, all, err := read(args)
	if err != nil {
		return err
	}
	return remove(cni, all)
}

func check(args *skel.CmdArgs) error {
	cni, all, err := read(args)
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := cni.CheckNetworkList(context.Background(), one.list, one.rt); err != nil {
			return err
		}
	}
	return nil
}

// The last first; what fails keeps none of the others from it.
func remove(cni *libcni.CNIConfig, all []attachment) error {
	var first error
	for i := len(all) - 1; i >= 0; i-- {
		if err := cni.DelNetworkList(context.Background(), all[i].list, all[i].rt); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func read(args *skel.CmdArgs) (*libcni.CNIConfig, []attachment, error) {
	var conf config
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return nil, nil, err
	}
	var pod map[string]string
	if text, said := conf.RuntimeConfig[annotations]; said {
		if err := json.Unmarshal(text, &pod); err != nil {
			return nil, nil, err
		}
	}
	cni := libcni.NewCNIConfigWithCacheDir(filepath.SplitList(os.Getenv("CNI_PATH")), conf.CacheDir, nil)
	list, err := listOf(conf.Delegate, conf.Name, conf.CNIVersion)
	if err != nil {
		return nil, nil, err
	}
	all := []attachment{{list, runtimeOf(args, args.IfName, map[string]interface{}{annotations: pod})}}
	elements, err := elementsOf(pod[networks], namespaceOf(args.Args))
	if err != nil {
		return nil, nil, err
	}
	for i, one := range elements {
		further, err := furtherOf(one, i, args, conf, pod)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, further)
	}
	return cni, all, nil
}

func furtherOf(one element, i int, args *skel.CmdArgs, conf config, pod map[string]string) (attachment, error) {
	text, err := os.ReadFile(filepath.Join(conf.Folder, one.Namespace+"_"+one.Name+".json"))
	if os.IsNotExist(err) {
		text, err = os.ReadFile(filepath.Join(conf.Folder, one.Name+".json"))
	}
	if err != nil {
		return attachment{}, fmt.Errorf("cannot find a network-attachment-definition (%s) in namespace (%s): %w", one.Name, one.Namespace, err)
	}
	list, err := listOf(text, one.Name, conf.CNIVersion)
	if err != nil {
		return attachment{}, err
	}
	if len(one.Args) > 0 {
		for at, plugin := range list.Plugins {
			if list.Plugins[at], err = libcni.InjectConf(plugin, map[string]interface{}{"args": map[string]interface{}{"cni": one.Args}}); err != nil {
				return attachment{}, err
			}
		}
	}
	name := one.Interface
	if name == "" {
		name = fmt.Sprintf("net%d", i+1)
	}
	// libcni gives a plugin of these what its configuration declares
	capabilities := map[string]interface{}{annotations: pod}
	if len(one.IPs) > 0 {
		capabilities["ips"] = one.IPs
	}
	if one.Mac != "" {
		capabilities["mac"] = one.Mac
	}
	return attachment{list, runtimeOf(args, name, capabilities)}, nil
}

func runtimeOf(args *skel.CmdArgs, name string, capabilities map[string]interface{}) *libcni.RuntimeConf {
	rt := &libcni.RuntimeConf{ContainerID: args.ContainerID, NetNS: args.Netns, IfName: name, CapabilityArgs: capabilities}
	for _, pair := range strings.Split(args.Args, ";") {
		if key, value, isPair := strings.Cut(pair, "="); isPair {
			rt.Args = append(rt.Args, [2]string{key, value})
		}
	}
	return rt
}

// A single configuration becomes a list of one, and takes the name of its definition if it has none.
func listOf(text []byte, name, cniVersion string) (*libcni.NetworkConfigList, error) {
	var fields map[string]interface{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	for key, value := range map[string]string{"name": name, "cniVersion": cniVersion} {
		if _, said := fields[key]; !said {
			fields[key] = value
		}
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	if _, isList := fields["plugins"]; isList {
		return libcni.ConfListFromBytes(whole)
	}
	single, err := libcni.ConfFromBytes(whole)
	if err != nil {
		return nil, err
	}
	return libcni.ConfListFromConf(single)
}

// `ns/name@interface, ...`, or a list of JSON.
func elementsOf(text, namespace string) ([]element, error) {
	var elements []element
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") {
		if err := json.Unmarshal([]byte(text), &elements); err != nil {
			return nil, fmt.Errorf("%s: %w", networks, err)
		}
	} else {
		for _, one := range strings.Split(text, ",") {
			name, link, _ := strings.Cut(strings.TrimSpace(one), "@")
			space, short, isNamed := strings.Cut(name, "/")
			if !isNamed {
				space, short = "", name
			}
			if short != "" {
				elements = append(elements, element{Name: short, Namespace: space, Interface: link})
			}
		}
	}
	for i := range elements {
		if elements[i].Namespace == "" {
			elements[i].Namespace = namespace
		}
	}
	return elements, nil
}

func namespaceOf(args string) string {
	for _, pair := range strings.Split(args, ";") {
		if value, found := strings.CutPrefix(pair, "K8S_POD_NAMESPACE="); found {
			return value
		}
	}
	return ""
}
