"""What AWS's cloud controller and the CSI driver of EBS get: the cluster's full name in cloud.conf and in tags, and the rights of the control plane's role."""
from aws_front import Cloud, client
from test_aws import SMALL, front, server  # noqa: F401


def test_conf_and_rights(front, tmp_path):  # noqa: F811
    c = Cloud(front, tmp_path, more="      iam: {control: managed}\n      cloud: {controller: true, csi: true}", pools=SMALL)
    assert c.tool("conf") == [{"name": "kraken-abcde", "config": "[Global]\nKubernetesClusterID = kraken-abcde\n", "ca": None}]
    c.tool("prepare")
    try:
        iam, ec2 = client(front, "iam"), client(front, "ec2")
        role, = [r["RoleName"] for r in iam.list_roles(PathPrefix="/slipway-abcde/")["Roles"]]
        statement, = iam.get_role_policy(RoleName=role, PolicyName="slipway")["PolicyDocument"]["Statement"]
        assert {"elasticloadbalancing:*", "ec2:CreateVolume", "ec2:AttachVolume", "ec2:DescribeVolumesModifications", "ec2:DescribeTags"} <= set(statement["Action"])
        # the controller takes the one group, and the subnets, that have its tag
        owned = [{"Name": "tag:kubernetes.io/cluster/kraken-abcde", "Values": ["owned"]}]
        assert len(ec2.describe_security_groups(Filters=owned)["SecurityGroups"]) == 1 and ec2.describe_subnets(Filters=owned)["Subnets"]
    finally:
        c.tool("down")


def test_nothing_is_given_that_is_not_asked_for(front, tmp_path):  # noqa: F811
    assert Cloud(front, tmp_path, pools=SMALL).tool("conf") == [{"name": None, "config": None, "ca": None}]
