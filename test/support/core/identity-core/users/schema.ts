/**
 * The tables of the stand-in, far fewer than the core's. An account is what the core calls a user:
 * one login method, or several that are linked.
 */
export const SCHEMA = `
create table if not exists tenants (
  tenant_id text primary key,
  third_party_ids text not null default '[]',
  position serial
);
create table if not exists roles (role text primary key, position serial);

create table if not exists bulk_import_users (
  id text primary key,
  raw_data text not null,
  status text not null default 'NEW',
  error_msg text,
  created_at bigint not null,
  updated_at bigint not null,
  position serial
);
create index if not exists bulk_import_users_by_age
  on bulk_import_users (created_at desc, id desc);
create index if not exists bulk_import_users_by_status on bulk_import_users (status);

create table if not exists accounts (
  id text primary key,
  is_primary boolean not null,
  time_joined bigint not null
);
create index if not exists accounts_by_age on accounts (time_joined, id);

create table if not exists login_methods (
  id text primary key,
  account_id text not null references accounts on delete cascade,
  position integer not null,
  recipe_id text not null,
  email text,
  phone_number text,
  third_party_id text,
  third_party_user_id text,
  password_hash text,
  is_verified boolean not null,
  time_joined bigint not null
);
create index if not exists login_methods_by_account on login_methods (account_id);
create index if not exists login_methods_by_email on login_methods (email);
create index if not exists login_methods_by_phone on login_methods (phone_number);
create index if not exists login_methods_by_third_party
  on login_methods (third_party_id, third_party_user_id);

create table if not exists method_tenants (
  method_id text not null references login_methods on delete cascade,
  tenant_id text not null references tenants on delete cascade,
  position integer not null,
  primary key (method_id, tenant_id)
);

-- What one method may sign in with in a tenant, and nobody else by the same recipe.
create table if not exists logins (
  tenant_id text not null,
  login text not null,
  method_id text not null references login_methods on delete cascade,
  primary key (tenant_id, login)
);
create index if not exists logins_by_method on logins (method_id);

-- Unique values of primary accounts in a tenant. The import can give two accounts the same value.
create table if not exists primary_infos (
  tenant_id text not null,
  info text not null,
  account_id text not null references accounts on delete cascade
);
alter table primary_infos drop constraint if exists primary_infos_pkey;
create index if not exists primary_infos_by_info on primary_infos (tenant_id, info);
create index if not exists primary_infos_by_account on primary_infos (account_id);

create table if not exists userid_mapping (
  core_id text primary key references login_methods on delete cascade,
  external_id text not null unique
);

-- By external id where one is mapped, as in the core: the id is not translated.
create table if not exists user_roles (
  user_id text not null,
  tenant_id text not null,
  role text not null,
  primary key (user_id, tenant_id, role)
);
create table if not exists user_metadata (user_id text primary key, user_metadata text not null);
create table if not exists totp_user_devices (
  user_id text not null,
  device_name text not null,
  secret_key text not null,
  period integer not null,
  skew integer not null,
  verified boolean not null,
  position serial,
  primary key (user_id, device_name)
);

insert into tenants (tenant_id) values ('public') on conflict do nothing;
`
