"""A hypervisor of nova's whose servers can boot. It runs in nova-compute (openstack.sh): what nova asks it to do with a server, it asks of a process of tests,
over a socket (test_openstack_real.py: Hypervisor), one line each way. All the rest is nova's own hypervisor without machines."""
import base64
import json
import os
import socket

from nova import exception
from nova.api.metadata import base as metadata
from nova.compute import power_state
from nova.virt import configdrive, fake, hardware


def config_drive(instance, injected, network_info):
    """{path: content in base64}, the files that nova's drivers write on the drive."""
    instance.device_metadata = None
    about = metadata.InstanceMetadata(instance, content=injected, network_info=network_info)
    files = configdrive.ConfigDriveBuilder(instance_md=about).mdfiles
    return {path: base64.b64encode(d.encode() if isinstance(d, str) else d).decode() for path, d in files}


def ports(network_info):
    return [{"mac": vif["address"], "address": ip["address"], "subnet": subnet["cidr"]}
            for vif in network_info or [] for subnet in vif["network"]["subnets"] for ip in subnet["ips"]]


class Driver(fake.FakeDriverWithoutFakeNodes):
    def ask(self, what, instance, **more):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(os.environ["SLIPWAY_BOOTS"])
            s.sendall(json.dumps({"what": what, "id": instance.uuid, **more}).encode() + b"\n")
            answer = json.loads(s.makefile().readline())
        if "error" in answer:
            raise exception.NovaException(answer["error"])
        return answer

    def spawn(self, context, instance, image_meta, injected_files, admin_password, allocations, network_info=None, **more):
        super().spawn(context, instance, image_meta, injected_files, admin_password, allocations, network_info=network_info, **more)
        try:
            drive = config_drive(instance, injected_files, network_info) if configdrive.required_by(instance) else None
            self.ask("spawn", instance, ports=ports(network_info), files=drive)
        except Exception as e:
            super().destroy(context, instance, network_info)
            raise exception.BuildAbortException(instance_uuid=instance.uuid, reason=str(e)) from e  # ERROR at once: there is no other host

    def destroy(self, context, instance, network_info, *more, **named):
        try:
            self.ask("destroy", instance)
        except OSError:  # the tests have ended, and their machines with them
            pass
        super().destroy(context, instance, network_info, *more, **named)

    def power_off(self, instance, *more, **named):
        self.ask("off", instance)
        super().power_off(instance, *more, **named)

    def power_on(self, context, instance, network_info, *more, **named):
        self.ask("on", instance)
        super().power_on(context, instance, network_info, *more, **named)

    def reboot(self, context, instance, network_info, *more, **named):
        self.ask("off", instance)
        self.power_on(context, instance, network_info)

    def get_info(self, instance, use_cache=True):
        known = super().get_info(instance)
        runs = self.ask("state", instance)["runs"]
        return known if runs is None else hardware.InstanceInfo(state=power_state.RUNNING if runs else power_state.SHUTDOWN)

    def get_console_output(self, context, instance):
        return self.ask("console", instance)["output"].encode()
