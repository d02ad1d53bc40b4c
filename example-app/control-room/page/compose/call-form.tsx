import { Choice, Field, Option } from '../components/field.js'
import { room } from '../state.js'
import { change, changeMethod, draft } from './draft.js'
import { HostileTokenPicker } from './hostile-token-picker.js'

const PERMISSIONS = ['orders:read', 'orders:write', 'orders:delete']

/** What the call is made of. */
export function CallForm() {
  const { method } = draft.value
  return (
    <div class="call-form">
      <ReceiverChoice />
      <Choice
        label="Request"
        value={method}
        options={[
          ['GET', 'GET, a read'],
          ['POST', 'POST, a write'],
        ]}
        onChoose={changeMethod}
      />
      <TextField name="caller" label="Caller" hint={CALLER_HINT} />
      <TextField name="audience" label="Audience" hint={AUDIENCE_HINT} />
      <div class="wide stack">
        <Permissions />
        <TokenChoice />
        {method === 'POST' && <WriteChoices />}
        <HostileTokenPicker />
      </div>
    </div>
  )
}

const CALLER_HINT = 'sub of the token. Approved are billing and, to read, reporting.'
const AUDIENCE_HINT = 'aud of the token. The receivers are orders.'

interface TextFieldProps {
  readonly name: 'caller' | 'audience'
  readonly label: string
  readonly hint: string
}

function TextField({ name, label, hint }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      <input
        type="text"
        value={draft.value[name]}
        spellcheck={false}
        autocomplete="off"
        onInput={({ currentTarget }) => change({ [name]: currentTarget.value })}
      />
    </Field>
  )
}

function ReceiverChoice() {
  const killed = (name: string) =>
    room.value?.receivers.find((each) => each.name === name)?.phase === 'killed'
  const text = (name: string) => (killed(name) ? `${name} (killed)` : name)
  return (
    <Choice
      label="Receiver"
      value={draft.value.receiver}
      options={[
        ['orders-1', text('orders-1')],
        ['orders-2', text('orders-2')],
      ]}
      onChoose={(receiver) => change({ receiver })}
    />
  )
}

function Permissions() {
  const { permissions } = draft.value
  function toggle(permission: string): void {
    const others = permissions.filter((each) => each !== permission)
    change({
      permissions: others.length < permissions.length ? others : [...permissions, permission],
    })
  }
  return (
    <fieldset class="choice">
      <legend>Permissions in the token</legend>
      <div class="choice-options">
        {PERMISSIONS.map((permission) => (
          <Option
            key={permission}
            type="checkbox"
            name="permission"
            isChosen={permissions.includes(permission)}
            onChoose={() => toggle(permission)}
          >
            <code>{permission}</code>
          </Option>
        ))}
      </div>
    </fieldset>
  )
}

function TokenChoice() {
  return (
    <Choice
      label="Token"
      value={draft.value.isTokenReused ? 'again' : 'fresh'}
      options={[
        ['fresh', 'a fresh one'],
        ['again', 'the caller’s last one again'],
      ]}
      onChoose={(token) => change({ isTokenReused: token === 'again' })}
    />
  )
}

function WriteChoices() {
  const { idempotencyKey, body } = draft.value
  return (
    <>
      <Choice
        label="Idempotency key"
        value={idempotencyKey}
        options={[
          ['new', 'a new one'],
          ['same', 'that of the last write'],
          ['none', 'none'],
        ]}
        onChoose={(key) => change({ idempotencyKey: key })}
      />
      <Choice
        label="Body"
        value={body}
        options={[
          ['usual', 'the usual one'],
          ['another', 'another one'],
        ]}
        onChoose={(chosen) => change({ body: chosen })}
      />
    </>
  )
}
