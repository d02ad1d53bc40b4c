import { Panel } from '../components/panel.js'

export function ContainmentPanel() {
  return (
    <Panel id="containment" title="Containment" about="">
      {null}
    </Panel>
  )
}
