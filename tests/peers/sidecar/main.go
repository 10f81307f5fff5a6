// Two sidecars of CSI drivers, with the flags of upstream's, whose modules are not served: node-driver-registrar tells the kubelet of a driver, livenessprobe
// tells the kubelet whether the driver answers.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	kubelet "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type registration struct {
	kubelet.UnimplementedRegistrationServer
	name, endpoint string
}

func (r *registration) GetInfo(context.Context, *kubelet.InfoRequest) (*kubelet.PluginInfo, error) {
	return &kubelet.PluginInfo{Type: kubelet.CSIPlugin, Name: r.name, Endpoint: r.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

func (r *registration) NotifyRegistrationStatus(_ context.Context, s *kubelet.RegistrationStatus) (*kubelet.RegistrationStatusResponse, error) {
	if !s.PluginRegistered {
		log.Fatalf("the kubelet did not register %s: %s", r.name, s.Error)
	}
	log.Printf("the kubelet has registered %s", r.name)
	return &kubelet.RegistrationStatusResponse{}, nil
}

func register(driver csi.IdentityClient, endpoint string) error {
	info, err := driver.GetPluginInfo(context.Background(), &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	path := filepath.Join("/registration", info.Name+"-reg.sock")
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	kubelet.RegisterRegistrationServer(server, &registration{name: info.Name, endpoint: endpoint})
	return server.Serve(listener)
}

func answer(driver csi.IdentityClient, address string) error {
	http.HandleFunc("/healthz", func(w http.ResponseWriter, r *http.Request) {
		if _, err := driver.Probe(r.Context(), &csi.ProbeRequest{}); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return http.ListenAndServe(address, nil)
}

func main() {
	csiAddress := flag.String("csi-address", "", "the driver's socket")
	endpoint := flag.String("kubelet-registration-path", "", "the same socket, as the kubelet sees it")
	address := flag.String("http-endpoint", "", "where /healthz is")
	flag.Parse()
	connection, err := grpc.NewClient("unix://"+*csiAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil && *endpoint != "" {
		err = register(csi.NewIdentityClient(connection), *endpoint)
	} else if err == nil {
		err = answer(csi.NewIdentityClient(connection), *address)
	}
	log.Fatal(err)
}
