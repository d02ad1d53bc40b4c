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
      <div class="grid">
        <TextField name="caller" label="Caller (sub)" about="Approved: billing, reporting" />
        <TextField name="audience" label="Audience (aud)" about="Of the receivers: orders" />
      </div>
      <Permissions />
      <TokenChoice />
      {method === 'POST' && <WriteChoices />}
      <HostileTokenPicker />
    </div>
  )
}

interface TextFieldProps {
  readonly name: 'caller' | 'audience'
  readonly label: string
  readonly about: string
}

function TextField({ name, label, about }: TextFieldProps) {
  return (
    <Field label={label}>
      <input
        type="text"
        title={about}
        value={draft.value[name]}
        spellcheck={false}
        autocomplete="off"
        onInput={({ currentTarget }) => change({ [name]: currentTarget.value })}
      />
    </Field>
  )
}

function ReceiverChoice() {
  function text(name: string): string {
    const { phase = 'ready' } = room.value?.receivers.find((each) => each.name === name) ?? {}
    return phase === 'ready' ? name : `${name} (${phase})`
  }
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
      <legend>Permissions</legend>
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
  const { binding = 'none', isTokenReused } = draft.value
  return (
    <Choice
      label="Token"
      value={isTokenReused ? 'again' : binding}
      options={[
        ['none', 'fresh'],
        ['key', 'DPoP'],
        ['certificate', 'mTLS'],
        ['again', 'last one'],
      ]}
      onChoose={(chosen) => {
        const isTokenReused = chosen === 'again'
        change({ isTokenReused, binding: isTokenReused ? 'none' : chosen })
      }}
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
          ['same', 'the last one'],
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
